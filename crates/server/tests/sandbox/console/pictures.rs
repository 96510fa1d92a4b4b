//! Pictures for the documentation: in `target/pictures`; `make pictures` keeps them in `docs/pictures`.

use std::{env, time::Duration};

use serde_json::{Value, json};

use super::{Browser, send, service, submit, token, visitor};
use crate::{
    cluster::sql,
    service::{Service, until},
};

/// A training that has come to epoch 18 of 30, and goes on until the end of the test.
const TRAINING: &str = r#"
    results=$TAO_API_RESULTS_DIR/$TAO_API_JOB_ID
    mkdir -p "$results"
    awk 'BEGIN { for (i = 1; i <= 18; i++) printf "{\"status\": \"RUNNING\", \"epoch\": %d, \"max_epoch\": 30, \"eta\": \"1:12:40\", \"kpi\": {\"train_loss\": %.4f, \"val_loss\": %.4f, \"val_miou\": %.4f, \"learning_rate\": %.6f}}\n",
        i, 2.1 * exp(-i / 7) + 0.31 + 0.03 * sin(i * 2.1), 1.9 * exp(-i / 6) + 0.42 + 0.04 * sin(i * 1.3), 0.79 - 0.62 * exp(-i / 5) + 0.01 * sin(i * 1.7), 0.0006 * (1 - i / 30) ^ 0.9 }' >>"$results/status.json"
    exec sleep 600
"#;
/// One rank runs out of memory, and the others speak first.
const PRETRAINING: &str = r#"
    seq -f ' iteration %.0f/20000 | elapsed time per iteration (ms): 812.4 | lm loss: 4.69 | grad norm: 0.87 |' 10 10 420
    cat >&2 <<'END'
[rank1]:[E1127 03:22:41.518203411 ProcessGroupNCCL.cpp:607] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=8831, OpType=ALLREDUCE, Timeout(ms)=600000)
[rank3]: Traceback (most recent call last):
[rank3]:   File "/project/lm/pretrain.py", line 311, in <module>
[rank3]:     loss = engine.step(batch)
[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.12 GiB. GPU 3 has a total capacity of 79.11 GiB of which 1.94 GiB is free.
[rank1]:[E1127 03:22:42.004431208 ProcessGroupNCCL.cpp:627] [Rank 1] To avoid data inconsistency, we are taking the entire process down.
END
    exit 1
"#;
/// Twenty tasks end, one of them with an error, and the others wait.
const SWEEP: &str = r#"
    [ "$TAO_TASK" -lt 20 ] || exec sleep 600
    echo "METRICS {\"top1\": 0.7$TAO_TASK}"
    if [ "$lr" = 0.01 ] && [ "$seed" = 2 ] && [ "$decay" = 0 ]; then echo "FloatingPointError: the loss is NaN at step 1200" >&2; exit 1; fi
"#;
/// How the jobs of the week before end.
const FAILURES: [&str; 3] = [
    "echo 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB.' >&2; exit 1",
    "echo 'FileNotFoundError: [Errno 2] No such file or directory: /lustre/datasets/coco/train.json' >&2; exit 1",
    "echo 'ValueError: expected 3 channels, got 4' >&2; exit 1",
];
const WEEK: usize = 84;

/// Moves the ended jobs of the week before, by 2 hours each, as if they had waited and run for some time on 8 GPUs.
const MOVED: &str = "
    set session_replication_role = replica;
    create temp table past on commit drop as
        select id, attempt, cluster, owner, labels, n, now() - n * interval '119 minutes' - interval '5 hours' as at,
               (40 + (n * 37) % 900 + case when n % 12 < 4 then 1500 else 0 end) * interval '1 second' as wait, (1200 + (n * 1733) % 9000) as ran
        from (select *, row_number() over (order by created_at desc) as n from jobs where labels ? 'week') j;
    update jobs j set created_at = at, submitted_at = at, started_at = at + wait, finished_at = at + wait + ran * interval '1 second'
        from past where past.id = j.id;
    update runs r set queued_since = at, started_at = at + wait, ended_at = at + wait + ran * interval '1 second'
        from past where past.id = r.job_id;
    delete from allocations where job_id in (select id from past);
    insert into allocations (cluster, slurm_job_id, started_at, elapsed, job_id, attempt, owner, labels, partition, state, gpus, cpus, nodes)
        select cluster, 900000 + n, at + wait, ran, id, attempt, owner, labels, 'polar', 'COMPLETED', 8, 64, 1 from past;
    update jobs set labels = labels - 'week' where labels ? 'week'";

fn job(name: &str, team: &str, gpus: u32, text: &str) -> Value {
    json!({
        "name": name, "labels": {"team": team}, "command": text,
        "resources": {"gpus_per_node": gpus, "cpus_per_task": 1, "time_hours": 4},
    })
}

/// Jobs of a week, all of which have ended.
fn week(service: &Service, token: &str) {
    let ids: Vec<_> = (0..WEEK)
        .map(|number| {
            let (name, team) = [
                ("segformer-b3 finetune", "vision"),
                ("whisper eval", "speech"),
                ("llama-8b sft", "language"),
                ("clip index", "vision"),
            ][number % 4];
            let text = if number % 9 == 4 { FAILURES[number / 9 % 3] } else { "true" };
            let mut job = job(&format!("{name} {}", 101 + number), team, 0, text);
            job["labels"]["week"] = "1".into();
            submit(service, token, &job)
        })
        .collect();
    until("the jobs of the week to end", Duration::from_mins(3), || {
        let left = "select count(*) from jobs where labels ? 'week' and finished_at is null";
        sql(&service.database_url, left) == "0"
    });
    assert_eq!(ids.len(), WEEK);
    sql(&service.database_url, MOVED);
}

fn nightly() -> Value {
    let mut jobs = json!({
        "prepare": job("prepare cityscapes", "vision", 0, "true"), "train-s": job("segformer-b1", "vision", 4, "true"),
        "train-m": job("segformer-b3", "vision", 4, "exec sleep 600"), "train-l": job("segformer-b5", "vision", 4, "exec sleep 600"),
        "compare": job("compare", "vision", 1, "true"), "publish": job("publish the best", "vision", 0, "true"),
    });
    for train in ["train-s", "train-m", "train-l"] {
        jobs[train]["needs"] = json!([{"job": "prepare"}]);
    }
    jobs["compare"]["needs"] = json!([{"job": "train-s"}, {"job": "train-m"}, {"job": "train-l"}]);
    jobs["publish"]["needs"] = json!([{"job": "compare"}]);
    json!({"name": "nightly segformer", "jobs": jobs})
}

/// Takes a picture of the page down to the end of its element `last`.
fn take(browser: &Browser, name: &str, last: &str) {
    let dir = env::var_os("PICTURES").unwrap_or_else(|| "target/pictures".into());
    browser.picture_in(dir, name, last);
}

#[test]
fn the_pictures_of_the_documentation() {
    let service = service();
    let token = token(&service, "mara", "read,write");
    week(&service, &token);
    let failed = submit(&service, &token, &job("lm-1b pretraining", "language", 8, PRETRAINING));
    let mut sweep = job("resnet50 sweep", "vision", 1, SWEEP);
    sweep["array"] = json!({"matrix": {"lr": [0.1, 0.03, 0.01], "decay": [0, 0.0001], "seed": [1, 2, 3, 4]}, "max_parallel": 8});
    sweep["results"] = json!([{"name": "metrics", "json_line": "METRICS "}]);
    let sweep = submit(&service, &token, &sweep);
    let made = send(&service, &token, "/pipelines", &nightly());
    let pipeline = made.1["id"].as_str().unwrap_or_else(|| panic!("{}", made.1));
    let mut later = job("llama-8b sft 186", "language", 8, "true");
    later["backend_details"] = json!({"begin": "now+8hours"});
    let later = submit(&service, &token, &later);
    // Wherever Slurm has put the others, one of the four nodes has four GPUs left.
    let running = submit(&service, &token, &job("segformer-b3 cityscapes", "vision", 4, TRAINING));

    let browser = visitor(&service, &token);
    browser.open(&format!("/ui/pipelines/{pipeline}"));
    browser.sees("#live", "2 done · 2 running");
    take(&browser, "pipeline", "table");
    browser.open("/ui/jobs");
    browser.sees(&format!("#job-{failed} .badge"), "Error");
    browser.sees(&format!("#job-{sweep}"), "4 running");
    browser.sees(&format!("#job-{running}"), "60 %");
    browser.sees("main", "earliest start");
    take(&browser, "jobs", "table.jobs tbody tr:nth-child(10)");
    browser.open(&format!("/ui/jobs/{running}"));
    browser.sees(".charts figure:last-of-type", "As a table");
    take(&browser, "job", ".charts");
    browser.open(&format!("/ui/jobs/{failed}"));
    browser.sees(".cause pre.line", "OutOfMemoryError");
    browser.run("document.getElementById('followed').open = true");
    take(&browser, "cause", ".cause");
    browser.open(&format!("/ui/jobs/{sweep}/tasks"));
    browser.sees(".grid", "×");
    take(&browser, "sweep", "#task-20");
    browser.open("/ui/usage?window=7&group_label=team");
    browser.sees(".charts figure:last-of-type", "As a table");
    take(&browser, "usage", ".charts");
    browser.finish(&[]);
    let cancels = [sweep, later, running].map(|id| format!("/jobs/{id}/cancel"));
    for path in cancels.into_iter().chain([format!("/pipelines/{pipeline}/cancel")]) {
        assert_eq!(send(&service, &token, &path, &json!({})).0, 202, "{path}");
    }
    until("the end of all", Duration::from_mins(3), || {
        sql(&service.database_url, "select count(*) from jobs where finished_at is null") == "0"
    });
}
