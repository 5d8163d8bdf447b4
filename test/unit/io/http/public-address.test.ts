import assert from "node:assert/strict";
import { isPublicAddress } from "#src/io/http/public-address.js";

describe("isPublicAddress", () => {
  it("is false for private, loopback, link-local and other closed networks", () => {
    for (const ip of [
      "0.0.0.0",
      "10.0.0.1",
      "100.64.0.1",
      "127.0.0.1",
      "127.255.255.255",
      "169.254.169.254",
      "172.16.0.1",
      "172.31.255.255",
      "192.168.1.1",
      "192.0.2.1",
      "198.18.0.1",
      "224.0.0.1",
      "255.255.255.255",
      "::",
      "::1",
      "fe80::1",
      "fe80::1%eth0",
      "fc00::1",
      "fd12::1",
      "ff02::1",
      "::ffff:127.0.0.1",
      "::ffff:8.8.8.8",
      "64:ff9b::7f00:1",
      "2001:db8::1",
      "2001:0:1::1",
      "2002:7f00:1::",
      "localhost",
      "",
      "8.8.8.8.8",
    ]) {
      assert.equal(isPublicAddress(ip), false, ip);
    }
  });

  it("is true for addresses of the internet", () => {
    for (const ip of ["8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450:4001::1"]) {
      assert.equal(isPublicAddress(ip), true, ip);
    }
  });
});
