//! `POST /jobs` by one client and by many; an accepted job is committed. The API runs without a worker, which would take a share
//! of the machine.

use std::{sync::Arc, time::Duration};

use crate::{
    Bench,
    load::{self, Make, Pace},
    row::{Row, each},
    service::{Plan, Service},
    stats::median,
};

const CLIENTS: [usize; 3] = [1, 32, 256];

pub(crate) fn run(bench: &Bench, rows: &mut Vec<Row>) -> anyhow::Result<()> {
    let service = Service::start(bench, &Plan { roles: vec!["api"], ..Plan::default() })?;
    let http = service.http.clone();
    let make: Make = Arc::new(move |number| {
        let body = format!(
            r#"{{"name": "job {number}", "labels": {{"team": "vision"}}, "network_arch": "classification_pyt",
                "action": "train", "specs": {{"train": {{"num_epochs": 10, "num_gpus": 1}}}},
                "image": "registry.example.org/tao/tao-toolkit:6.0.0", "docker_env_vars": {{"WANDB_API_KEY": "a secret"}},
                "backend_details": {{"backend_type": "slurm", "partition": "polar"}}}}"#
        );
        load::request(&http, "POST", "/jobs", &[], &body)
    });
    let lasting = Duration::from_millis(bench.size(2000, 300) as u64);
    for clients in CLIENTS {
        let (mut rates, mut slow, mut half, mut cpu) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for _ in 0..bench.rounds() {
            let before = service.usage()?;
            let outcome = load::run(&service.http, clients, Pace::Closed, lasting, &make)?.expect(&[201])?;
            let used = service.usage()?.since(before).cpu;
            rates.push(outcome.per_second());
            slow.push(outcome.percentile(99.0));
            half.push(outcome.percentile(50.0));
            cpu.push(each(used.as_secs_f64() * 1e6, outcome.millis.len()));
        }
        let plural = if clients == 1 { "client" } else { "clients" };
        rows.push(
            Row::of(format!("`POST /jobs`, {clients} {plural}"), "1/s", &rates)
                .note(format!("{:.0} µs of service CPU per request", median(&cpu))),
        );
        rows.push(
            Row::of(format!("`POST /jobs`, {clients} {plural}: p99"), "ms", &slow)
                .note(format!("p50 {:.2} ms", median(&half))),
        );
    }
    Ok(())
}
