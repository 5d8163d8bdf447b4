/** Stands in each of them. */
export const SECRET = "3141592-xyz";

/** Addresses that hold a secret, in the spellings that people use. */
export const SPELLINGS = [
  `postgres://user:${SECRET}@localhost/db`,
  `postgres://user:a@${SECRET}@localhost/db`,
  `postgres://user:a/${SECRET}@localhost/db`,
  `postgres://user:1/${SECRET}@localhost/db`,
  `postgres://user:1#${SECRET}@localhost/db`,
  `postgres://user:1?${SECRET}@localhost/db`,
  `postgres://user:1?x=${SECRET}@localhost/db`,
  `postgres://user:${SECRET}%40localhost/db`,
  `postgres://user:1/${SECRET}%40localhost/db`,
  `postgres://user%3A${SECRET}@localhost/db`,
  `postgres://${SECRET}@localhost/db`,
  `postgres://a@${SECRET}@localhost/db`,
  `postgres://user:x:${SECRET}@localhost/db`,
  `postgres://user:x@localhost/db?password=a@${SECRET}`,
  `postgresql://localhost/db?password=${SECRET}`,
  `postgresql://localhost/db?user=a&PASSWORD=${SECRET}`,
  `postgresql://localhost/db?p%61ssword=${SECRET}`,
  `postgresql://localhost/db?sslpassword=${SECRET}&sslmode=require`,
  `postgresql://localhost/db?${SECRET}`,
  `postgresql://localhost/db#${SECRET}`,
  `postgres:user:${SECRET}@localhost/db`,
  `sqlite:postgres://user:${SECRET}@localhost/db`,
  `sqlite://user:${SECRET}@localhost/db`,
  `s3://KEY:${SECRET}@bucket/prefix`,
  `host=localhost user=me password=${SECRET}`,
  `host=localhost user=me password = '${SECRET}'`,
  `user:${SECRET}@localhost/db`,
  ` postgres://user:${SECRET}@localhost/db`,
];
