"""What else the SDK object does, on the trials of the experiment. The address is in the environment.

Arguments: the ids of the best trial, of the one that failed, and of one whose files AutoML deleted.
"""

import sys

from tao_slurm import Client
from tao_slurm.tao import TaoSlurmSDK

best, failed, deleted = sys.argv[1:]
client = Client()
sdk = TaoSlurmSDK(client, listing_partition="cpu")

assert [sdk.get_job_status(id).status for id in (best, failed, deleted)] == ["Complete", "Error", "Unknown"]
assert {row["job_id"] for row in sdk.list_jobs()} == {best, failed}
assert [row["job_id"] for row in sdk.list_jobs("Error")] == [failed]
whole = client.job(failed).details()
assert whole.secret_env_vars == ["HF_TOKEN"] and "hf_hidden" not in whole.model_dump_json()

cause = sdk.get_failure_analysis(failed)
assert cause is not None and cause["reason"] == "cuda-out-of-memory", cause
assert sdk.get_failure_analysis(best) is None
assert "trained" in sdk.get_job_logs(best, tail=5) and "trained" in "".join(sdk.iter_job_log_chunks(best))
assert sdk.cancel_job(best) is True and sdk.get_job_status(best).status == "Complete"

results = sdk.get_job_results_dir(best)
assert results.startswith("lustre:///") and results.endswith(f"/results/{best}"), results
path = results.removeprefix("lustre://")
assert sdk.get_checkpoints(best) == [f"{path}/results_dir/model_epoch_001.pth"]
assert {"go", "results_dir", "spec.json"} <= set(sdk.list_path(results))
assert sdk.check_path(results) is True and sdk.check_path(f"{results}/none") is False

assert sdk.delete_job_artifacts(best) is True and sdk.get_job(best) is None
print("all done")
