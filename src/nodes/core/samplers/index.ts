export const samplerNodes = [] as const;
