export const controlNodes = [] as const;
