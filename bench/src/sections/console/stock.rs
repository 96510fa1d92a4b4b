//! Jobs as a site has them: copies of one job under many names, labels and owners. Some have failed, some were retried, some are sweeps,
//! and the newest have not ended.

use anyhow::Context;
use serde_json::json;

use crate::{Bench, sandbox::BENCH_PARTITION, service::Service, stock};

/// What sets the copies apart. `g` is the number of a copy, the oldest first; `$NEWEST` is the number of the first one that has not ended.
const VARIED: &str = r"
begin;
alter table jobs disable trigger user;
alter table slurm_metadata disable trigger user;
alter table runs disable trigger user;
create temporary table copy on commit drop as
    select j.id, row_number() over (order by j.id) - 1 as g from jobs j where j.id::text like '01900000-0000-7000-8000-%';
create temporary table rule on commit drop as
    select row_number() over () - 1 as n, * from (values
        ('cuda-out-of-memory', 'gpu_memory'), ('exception', 'code'), ('file-missing', 'data'), ('nccl', 'network'), ('time-limit', 'time_limit'),
        ('module-missing', 'environment'), ('node_fail', 'slurm'), ('disk-full', 'storage'), ('unknown', 'unknown')) v (rule, category);
update jobs j
set owner = (array['ana', 'ben', 'chloe', 'dmitri', 'eun', 'farah', 'goran', 'hana', 'ivan', 'jun', 'bench'])[1 + g * 7 % 11],
    name = (array['llama-8b-sft', 'resnet50-imagenet', 'cosmos-rl', 'eval-mmlu', 'grounding-dino', 'whisper-large'])[1 + g % 6]
           || '-' || (array['baseline', 'lr-sweep', 'ablation', 'nightly'])[1 + g % 4] || '-' || g,
    labels = jsonb_build_object('team', (array['vision', 'speech', 'robotics', 'nlp', 'infra'])[1 + g % 5], 'experiment', 'exp-' || g % 400,
                                'seed', (g % 8)::text),
    partition = (array['polar', 'polar3', 'polar,polar3', 'backfill'])[1 + g * 3 % 4],
    attempt = case when g % 20 = 3 then 2 else 1 end,
    status = case when g >= $NEWEST then case when g % 3 = 0 then 'Pending' else 'Running' end
                  when g % 10 in (4, 7) then 'Error' when g % 25 = 1 then 'Canceled' else 'Done' end,
    phase = case when g < $NEWEST then 'ended' when g % 3 = 0 then 'in_queue' else 'running' end,
    finished_at = case when g < $NEWEST then j.finished_at end,
    message = case when g < $NEWEST then j.message when g % 3 = 0 then 'In the queue since 10:00: waiting for resources.'
                   else 'Running on 4 nodes; epoch 12 of 40, loss 1.234.' end,
    pending_reason = case when g >= $NEWEST and g % 3 = 0 then 'Resources' end
from copy where copy.id = j.id;
insert into slurm_metadata select a.* from slurm_metadata t join copy on copy.id = t.job_id and copy.g % 20 = 3,
    lateral jsonb_populate_record(t, jsonb_build_object('attempt', 2, 'token', t.token || '-2', 'slurm_job_id', t.slurm_job_id + 5000000)) a;
update slurm_metadata a set concluded_at = null, outcome = null from copy where copy.id = a.job_id and copy.g >= $NEWEST;
insert into runs select r.* from runs t join copy on copy.id = t.job_id and copy.g % 20 = 3,
    lateral jsonb_populate_record(t, jsonb_build_object('attempt', 2)) r;
-- Sweeps of eight tasks; three tasks of each have failed.
update jobs j set spec = j.spec || jsonb_build_object('array', t.spec -> 'array'), array_state = t.array_state
from jobs t, copy where t.id = '$SWEEP' and copy.id = j.id and copy.g % 50 = 17;
insert into runs (job_id, attempt, task, over, outcome) select c.id, j.attempt, n, true, case when n in (2, 3, 6) then 'error' else 'done' end
from copy c join jobs j on j.id = c.id, generate_series(1, 7) n where c.g % 50 = 17;
update runs r
set outcome = case when j.array_state is null then null when r.task in (2, 3, 6) then 'error' else 'done' end,
    failure = case when j.status = 'Error' and (j.array_state is null or r.task in (2, 3, 6)) then jsonb_build_object(
        'rule', rule.rule, 'category', rule.category, 'why', 'the log shows it', 'advice', 'Read the lines before it, and try again with less.',
        'line', jsonb_build_object('log', 'main.err', 'offset', 81920, 'line', '[rank3]: RuntimeError: something went wrong'),
        'rank', 3, 'node', 'node02', 'followed', '[]'::jsonb, 'has_gaps', false) end
from jobs j, copy, rule where copy.id = j.id and r.job_id = j.id and r.attempt = j.attempt and rule.n = (copy.g / 10 + r.task) % 9;
update jobs j set rule = failure_rule(j.id, j.attempt, j.array_state is not null) where j.status = 'Error';
alter table jobs enable trigger user;
alter table slurm_metadata enable trigger user;
alter table runs enable trigger user;
commit";

/// Fills the service's database with copies of the job, and starts the service again without a worker: it would look for the jobs in Slurm.
pub(super) fn fill(bench: &Bench, service: &mut Service<'_>, template: &str) -> anyhow::Result<()> {
    let stored = bench.size(100_000, 2000);
    let active = bench.size(10_000, 200);
    let sweep = service.http.submit(&json!({
        "command": "true", "array": {"indices": "0-7"},
        "resources": {"num_gpus": 0, "cpus_per_task": 1, "time_hours": 0.1},
        "backend_details": {"backend_type": "slurm", "partition": BENCH_PARTITION},
    }))?;
    bench.say(&format!("creating {stored} jobs, {active} of them active"));
    service.take_roles(&["api"]);
    stock::fill(service, template, 0, stored as u64)?;
    let varied = VARIED.replace("$NEWEST", &(stored - active).to_string()).replace("$SWEEP", &sweep);
    service.sql(&varied).context("vary the copies")?;
    for table in ["jobs", "slurm_metadata", "runs"] {
        service.sql(&format!("vacuum analyze {table}"))?;
    }
    Ok(())
}
