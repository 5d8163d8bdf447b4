/** Headers with the bare token, besides `Authorization: Bearer`. */
export const BARE_TOKEN_HEADERS = ["x-compat-token", "x-service-hook-token"] as const;

/** Headers that may carry a token, which no log may show. */
export const TOKEN_HEADERS = ["authorization", ...BARE_TOKEN_HEADERS] as const;
