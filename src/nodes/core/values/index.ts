export const valueNodes = [] as const;
