export const conditioningNodes = [] as const;
