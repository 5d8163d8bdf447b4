export const samplingNodes = [] as const;
