// Sends a job, waits for its end and prints its log, by the types that are made from the document. Arguments: the address, a token.
import createClient from "openapi-fetch";
import type { components, paths } from "./service.js";

declare const process: { argv: string[] };
const [address, token] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl: address ?? "", headers: { Authorization: `Bearer ${token}` } });

const request: components["schemas"]["JobRequest"] = {
  name: "from TypeScript",
  command: "echo hello from TypeScript",
  resources: { num_gpus: 0, time_hours: 0.1 },
};
const sent = await client.POST("/jobs", { body: request, params: { header: { "Idempotency-Key": "typescript" } } });
if (!sent.data) throw new Error(`${sent.error.code}: ${sent.error.detail}`);
if (sent.data.name !== "from TypeScript" || sent.data.resources.gpus_per_node !== 0) throw new Error(JSON.stringify(sent.data));

const path = { id: sent.data.id };
const over: components["schemas"]["Status"][] = ["Done", "Error", "Canceled"];
let status = sent.data.status;
while (!over.includes(status)) {
  const answer = await client.GET("/jobs/{id}/status", { params: { path, query: { wait: 20 } } });
  if (!answer.data) throw new Error(JSON.stringify(answer.error));
  status = answer.data.status;
}
console.log(status, sent.data.id);
const log = await client.GET("/jobs/{id}/logs", { params: { path, query: { stream: "out" } }, parseAs: "text" });
console.log(log.data);
