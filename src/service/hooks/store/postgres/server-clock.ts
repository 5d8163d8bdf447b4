/**
 * Ms of the server's clock at the start of the statement: the same for all processes. An index is searched for it, since
 * it does not change within the statement and has the type of the columns.
 */
export const NOW_MARK = "floor(extract(epoch FROM statement_timestamp()) * 1000)::bigint";
