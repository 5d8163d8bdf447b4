export const modelNodes = [] as const;
