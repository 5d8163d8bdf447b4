import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { encodeKey, readS3Address, readS3Credentials, signV4 } from "#src/service/hooks/files/s3-client.js";
import { refuses } from "../../../../helpers/errors.js";

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

const place = (text: string, env = {}) => {
  const { origin, basePath, prefix, region } = readS3Address(text, env);
  return [origin.origin, basePath, prefix, region];
};

describe("readS3Address", () => {
  it("reads bucket and prefix, with AWS's host of the bucket", () => {
    assert.deepEqual(place("s3://renders"), ["https://renders.s3.us-east-1.amazonaws.com", "/", "", "us-east-1"]);
    assert.deepEqual(place("s3://renders/a%20b/c/", { AWS_DEFAULT_REGION: "eu-west-1" }), [
      "https://renders.s3.eu-west-1.amazonaws.com",
      "/",
      "a b/c/",
      "eu-west-1",
    ]);
  });

  it("puts the bucket in the path of another server, and where its name has dots", () => {
    const url = "s3://renders/x?endpoint=http://minio:9000&region=here";
    assert.deepEqual(place(url), ["http://minio:9000", "/renders/", "x/", "here"]);
    assert.deepEqual(place(`${url}&path_style=false`), ["http://renders.minio:9000", "/", "x/", "here"]);
    assert.deepEqual(place("s3://a.b.c").slice(0, 2), ["https://s3.us-east-1.amazonaws.com", "/a.b.c/"]);
    const env = { AWS_ENDPOINT_URL: "https://other", AWS_ENDPOINT_URL_S3: "https://s3.other", AWS_REGION: "r" };
    assert.deepEqual(place("s3://renders", env), ["https://s3.other", "/renders/", "", "r"]);
  });

  it("refuses what it cannot mean", async () => {
    for (const [text, sentence] of [
      [
        "s3://KEY:SECRET@renders/x",
        /^files: expected s3:\/\/BUCKET\/PREFIX without user, password, port and fragment\.$/,
      ],
      ["s3://a", /a bucket of 3 to 63/],
      ["s3://Ren_ders", /a bucket of 3 to 63/],
      ["s3://renders/a//b", /a prefix of at most 512 bytes/],
      ["s3://renders/%2e%2e/b%0a", /a prefix of at most 512 bytes/],
      ["s3://renders/%zz", /percent signs/],
      [`s3://renders/${"x".repeat(513)}`, /a prefix of at most 512 bytes/],
      ["s3://renders?regoin=x", /received "regoin"\. Did you mean "region"\?$/],
      ["s3://renders?region=a/b", /expected a region as us-east-1, received "a\/b"/],
      ["s3://renders?endpoint=ftp://x", /an endpoint as https/],
      ["s3://renders?endpoint=http://u:p@x", /an endpoint as https/],
      ["s3://renders?endpoint=http://x/path", /an endpoint as https/],
      ["s3://renders?path_style=1", /path_style=true or false/],
      ["file:///x", /expected s3:\/\/BUCKET\/PREFIX/],
    ] as const) {
      const error = await refuses(() => readS3Address(text, {}), "config.invalid", sentence);
      assert.doesNotMatch(error.message, /SECRET|u:p/);
    }
  });
});

describe("readS3Credentials", () => {
  it("reads AWS's variables, and needs the first two", async () => {
    const env = { AWS_ACCESS_KEY_ID: "id", AWS_SECRET_ACCESS_KEY: " key\n", AWS_SESSION_TOKEN: "" };
    assert.deepEqual(readS3Credentials(env), { accessKeyId: "id", secretAccessKey: "key" });
    assert.equal(readS3Credentials({ ...env, AWS_SESSION_TOKEN: "t" }).sessionToken, "t");
    const missing = () => readS3Credentials({ AWS_SECRET_ACCESS_KEY: "hush" });
    const error = await refuses(missing, "config.invalid", /expected AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY/);
    assert.doesNotMatch(error.message, /hush/);
  });
});
