//! Databases with a long history: copies of a real job with its attempts and events, made by Postgres itself.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::json;

use crate::{Bench, service::Service, stats::number};

/// The longest time for the real job.
const TIMEOUT: Duration = Duration::from_mins(2);

/// Runs one job to its end and returns its id, to be copied.
pub(crate) fn template(bench: &Bench, service: &Service<'_>) -> anyhow::Result<String> {
    let job = json!({
        "name": "train a classifier", "labels": {"team": "vision"}, "command": "echo an ordinary job",
        "resources": {"num_gpus": 0, "cpus_per_task": 1, "time_hours": 0.1},
        "backend_details": {"backend_type": "slurm"},
    });
    let id = service.http.submit(&job)?;
    let began = Instant::now();
    loop {
        let status = service.http.get(&format!("/jobs/{id}/status?wait=20"))?.ok()?;
        match status["status"].as_str() {
            Some("Done") => return Ok(id),
            Some("Error" | "Canceled") => anyhow::bail!("the job to copy failed: {status}"),
            _ => ensure!(began.elapsed() < TIMEOUT, "the job to copy has not finished: {status}"),
        }
        bench.say("waiting for the job to copy");
    }
}

/// Adds the copies `from..to`, the oldest first, while the service is stopped: a running service would publish an event for each
/// copy during the next measurement. Triggers are disabled meanwhile. One in a hundred has the status Error, and one in a hundred
/// has another label.
pub(crate) fn fill(service: &mut Service<'_>, template: &str, from: u64, to: u64) -> anyhow::Result<()> {
    service.stop()?;
    let columns = service.sql(
        "select string_agg(quote_ident(column_name), ', ') from information_schema.columns
         where table_name = 'jobs' and is_generated = 'NEVER'",
    )?;
    let last = to.checked_sub(1).context("the range is empty")?;
    let copies = format!(
        "select g, ('01900000-0000-7000-8000-' || lpad(to_hex(g), 12, '0'))::uuid as id, \
         timestamptz '2026-01-01' + g * interval '1 second' as at from generate_series({from}::bigint, {last}) g"
    );
    service.sql(&format!(
        "begin;
         alter table jobs disable trigger user;
         alter table slurm_metadata disable trigger user;
         alter table runs disable trigger user;
         alter table job_events disable trigger user;
         insert into jobs ({columns}) select {columns} from (select r.* from jobs t, ({copies}) c, lateral jsonb_populate_record(t, jsonb_build_object(
             'id', c.id, 'created_at', c.at, 'last_modified', c.at, 'finished_at', c.at,
             'status', case when c.g % 100 = 0 then 'Error' else t.status end,
             'labels', case when c.g % 100 = 1 then '{{\"team\": \"audio\"}}'::jsonb else t.labels end)) r
         where t.id = '{template}') copy;
         insert into slurm_metadata select r.* from slurm_metadata t, ({copies}) c, lateral jsonb_populate_record(t,
             jsonb_build_object('job_id', c.id, 'token', 'tao-job-' || c.id, 'slurm_job_id', 1000000 + c.g)) r
         where t.job_id = '{template}';
         insert into runs select r.* from runs t, ({copies}) c, lateral jsonb_populate_record(t,
             jsonb_build_object('job_id', c.id)) r
         where t.job_id = '{template}';
         insert into job_events (job_id, seq, at, kind, attempt, file, earlier_run, data, position)
         select c.id, e.seq, c.at, e.kind, e.attempt, e.file, e.earlier_run, e.data,
                (select head from event_order) + row_number() over (order by c.g, e.seq)
         from job_events e, ({copies}) c where e.job_id = '{template}';
         update event_order set head = greatest(head, (select max(position) from job_events));
         alter table jobs enable trigger user;
         alter table slurm_metadata enable trigger user;
         alter table runs enable trigger user;
         alter table job_events enable trigger user;
         commit;"
    ))?;
    service.sql("vacuum analyze jobs")?;
    service.sql("vacuum analyze slurm_metadata")?;
    service.sql("vacuum analyze runs")?;
    service.sql("vacuum analyze job_events")?;
    service.launch()
}

/// The seconds since a copy finished.
pub(crate) fn ended_for(service: &Service<'_>, copy: u64) -> anyhow::Result<u64> {
    let age = "select floor(extract(epoch from now() - finished_at))::bigint from jobs";
    Ok(service.sql(&format!("{age} where id = '{}'", id(copy)))?.parse()?)
}

/// The id of a copy.
pub(crate) fn id(number: u64) -> String {
    format!("01900000-0000-7000-8000-{number:012x}")
}

/// The size of a table in MB with indexes and TOAST, and the size of its indexes alone.
pub(crate) fn megabytes(service: &Service<'_>, table: &str) -> anyhow::Result<[f64; 2]> {
    let sizes =
        service.sql(&format!("select pg_total_relation_size('{table}'), pg_indexes_size('{table}')"))?;
    let (all, indices) = sizes.split_once('|').context("two sizes")?;
    Ok([number(all.parse()?) / 1e6, number(indices.parse()?) / 1e6])
}
