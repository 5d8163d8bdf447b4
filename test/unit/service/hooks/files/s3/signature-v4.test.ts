import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { encodeKey, signV4 } from "#src/service/hooks/files/s3/signature-v4.js";

// examples of "Signature Calculations for the Authorization Header" in the Amazon S3 API Reference
const credentials = {
  accessKeyId: "AKIAIOSFODNN7EXAMPLE",
  secretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
};
const host = "examplebucket.s3.amazonaws.com";
const at = { credentials, region: "us-east-1", now: new Date("2013-05-24T00:00:00Z") };
const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

describe("signV4", () => {
  it("signs AWS's example of GET", () => {
    const request = {
      method: "GET",
      host,
      path: "/test.txt",
      headers: { range: "bytes=0-9" },
      payloadHash: sha256(""),
    };
    assert.equal(
      signV4(request, at).authorization,
      "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, " +
        "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, " +
        "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
    );
  });

  it("signs AWS's example of PUT", () => {
    const headers = { date: "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY" };
    const path = `/${encodeKey("test$file.text")}`;
    const request = { method: "PUT", host, path, headers, payloadHash: sha256("Welcome to Amazon S3.") };
    assert.match(
      signV4(request, at).authorization!,
      /SignedHeaders=date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class, Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd$/,
    );
  });

  it("signs the token of temporary credentials", () => {
    const temporary = { ...at, credentials: { ...credentials, sessionToken: "token==" } };
    const request = { method: "GET", host, path: "/a", headers: {}, payloadHash: sha256("") };
    const signed = signV4(request, temporary);
    assert.equal(signed["x-amz-security-token"], "token==");
    assert.match(signed.authorization!, /SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token,/);
  });
});

describe("encodeKey", () => {
  it("encodes every byte but the unreserved ones and the slash", () => {
    assert.equal(encodeKey("a/b c+d!'()*~ü😀.png"), "a/b%20c%2Bd%21%27%28%29%2A~%C3%BC%F0%9F%98%80.png");
  });
});
