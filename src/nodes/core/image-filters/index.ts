export const imageFilterNodes = [] as const;
