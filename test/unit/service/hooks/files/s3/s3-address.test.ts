import assert from "node:assert/strict";
import { readS3Address, readS3Credentials } from "#src/service/hooks/files/s3/s3-address.js";
import { refuses } from "../../../../../helpers/errors.js";

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
