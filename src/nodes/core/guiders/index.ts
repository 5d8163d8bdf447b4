export const guiderNodes = [] as const;
