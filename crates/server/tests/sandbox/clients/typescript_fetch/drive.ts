// Sends a job, waits for its end and prints its log, by the client of openapi-generator. Arguments: the address, a token.
import { Configuration, JobsApi, Status } from "./made";

declare const process: { argv: string[]; exit(code: number): never };

async function drive([address, token]: string[]): Promise<void> {
  const jobs = new JobsApi(new Configuration({ basePath: address, accessToken: token }));
  const sent = await jobs.createJob({
    idempotencyKey: "typescript-fetch",
    jobRequest: {
      name: "from typescript-fetch",
      command: "echo hello from typescript-fetch",
      resources: { numGpus: 0, timeHours: 0.1 },
    },
  });
  if (sent.name !== "from typescript-fetch" || sent.resources.gpusPerNode !== 0) throw new Error(JSON.stringify(sent));

  const over: Status[] = [Status.Done, Status.Error, Status.Canceled];
  let status = sent.status;
  while (!over.includes(status)) status = (await jobs.getJobStatus({ id: sent.id, wait: 20 })).status;
  console.log(status, sent.id);
  console.log(await jobs.getJobLogs({ id: sent.id, stream: "out" }));
}

drive(process.argv.slice(2)).catch((error) => {
  console.error(error);
  process.exit(1);
});
