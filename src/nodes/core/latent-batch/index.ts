export const latentBatchNodes = [] as const;
