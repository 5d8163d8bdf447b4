export const schedulerNodes = [] as const;
