export const imageNodes = [] as const;
