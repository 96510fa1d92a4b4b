// A certified OpenID provider with one client. Anybody can log in by name; the name says which scopes the tokens have.
//
// node --input-type=module - REDIRECT_URL <provider.mjs, in the directory of its packages. The first line of the output is the issuer.
import { generateKeyPairSync } from "node:crypto";
import { createServer } from "node:http";
import Provider from "oidc-provider";

const groups = { ann: ["gpu-users"], bob: ["gpu-users"] };
const server = createServer((request, response) => answer(request, response));
await new Promise((done) => server.listen(0, "127.0.0.1", done));
// Another host than the console's is another site: strict cookies do not come along from there.
const issuer = `http://localhost:${server.address().port}`;
const key = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({ format: "jwk" });

const provider = new Provider(issuer, {
  jwks: { keys: [{ ...key, kid: "one", use: "sig", alg: "RS256" }] },
  clients: [
    {
      client_id: "console",
      client_secret: "provider-secret",
      redirect_uris: [process.argv[2]],
      grant_types: ["authorization_code"],
      response_types: ["code"],
    },
  ],
  cookies: { keys: ["of-the-provider"] },
  pkce: { required: () => true },
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  extraTokenClaims: (_, token) => ({ groups: groups[token.accountId] ?? [] }),
  features: {
    devInteractions: { enabled: false },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => "urn:tao-slurm",
      useGrantedResource: () => true,
      getResourceServerInfo: () => ({
        scope: "",
        audience: "tao-slurm",
        accessTokenFormat: "jwt",
        accessTokenTTL: 300,
        jwt: { sign: { alg: "RS256" } },
      }),
    },
  },
  // Nobody is asked what the console may do.
  loadExistingGrant: async ({ oidc }) => {
    const grant = new provider.Grant({ accountId: oidc.session.accountId, clientId: oidc.client.clientId });
    grant.addOIDCScope("openid");
    await grant.save();
    return grant;
  },
});

const form = `<!DOCTYPE html><title>Provider</title>
  <form method="post"><h1>Who are you?</h1><input name="name"><button>Continue</button><button name="no" value="1">Cancel</button></form>`;

async function answer(request, response) {
  if (request.url === "/favicon.ico") return response.writeHead(204).end();
  if (!request.url.startsWith("/interaction/")) return provider.callback()(request, response);
  if (request.method === "GET") return response.setHeader("content-type", "text/html").end(form);
  let text = "";
  for await (const part of request) text += part;
  const fields = new URLSearchParams(text);
  const result = fields.has("no")
    ? { error: "access_denied", error_description: "<b>The visitor</b> said no" }
    : { login: { accountId: fields.get("name") } };
  await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false });
}

console.log(issuer);
