import type { RequestListener } from "node:http";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";

/** A certificate for "localhost" that signs itself, and its key: useless to anyone else. */
export const CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBpDCCAUqgAwIBAgIUCSayjSasbyStdcwQIxUjviyISVYwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMzE2MTIzMFoYDzIxMjYxMDMw
MTYxMjMwWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAR048juo2KA0X7xKt6NlBA7h3XSGQ2gbG4KHTV957QnU3j9/dWZeN1m
VLw4e19gMKUr4f/+erx3WJFg+Q7CjKFBo3gwdjAdBgNVHQ4EFgQUwj9scGtQUTgK
mdVLWuSiYUd5B9YwHwYDVR0jBBgwFoAUwj9scGtQUTgKmdVLWuSiYUd5B9YwDwYD
VR0TAQH/BAUwAwEB/zAjBgNVHREEHDAagglsb2NhbGhvc3SCDXBpY3R1cmVzLnRl
c3QwCgYIKoZIzj0EAwIDSAAwRQIgHWs+zgEeRIHKiBsbIwh+W8ptbaBX4z9dDsTP
1h5oEmkCIQDSQqTFMsC3OtbYFLePEQ2Aa7S1aLIhYsfA5uNwsZmiMQ==
-----END CERTIFICATE-----
`;
const KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQghaT9w65/N3/G1ltw
8p4uSrBK1U/k+sLcACLrOPaaAVqhRANCAAR048juo2KA0X7xKt6NlBA7h3XSGQ2g
bG4KHTV957QnU3j9/dWZeN1mVLw4e19gMKUr4f/+erx3WJFg+Q7CjKFB
-----END PRIVATE KEY-----
`;

/** Starts a server on the loopback address; `close` ends its connections, too. */
export async function httpsServer(listener: RequestListener): Promise<{ address: string; close(): Promise<void> }> {
  const server = createServer({ cert: CERTIFICATE, key: KEY }, listener);
  await new Promise<void>((resolve) => server.listen(0, "localhost", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    address: `https://localhost:${port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
