//! The cost of one poll with few and with many pending jobs; none, a few or all of them have changed. The jobs are real and wait
//! in a partition that is down. A change is simulated: we change the stored row, so that the next poll differs from it.

use crate::{
    Bench,
    polls::{grow, plan, polls},
    row::Row,
    sandbox::BENCH_PARTITION,
    service::Service,
    stats::{grouped, median, number},
    stock,
};

const SHARES: [u64; 3] = [0, 1, 100];

pub(crate) fn run(bench: &Bench, rows: &mut Vec<Row>) -> anyhow::Result<()> {
    let sizes = [10, bench.size(1000, 20), bench.size(10_000, 40)];
    // Before the service starts, because it reads the cluster's partitions then.
    let _closed = bench.sandbox.close(BENCH_PARTITION)?;
    let mut service = Service::start(bench, &plan())?;
    let template = stock::template(bench, &service)?;
    stock::fill(&mut service, &template, 0, bench.size(90_000, 100) as u64)?;
    let (mut few_commands, mut unchanged) = (0.0, Vec::new());
    for size in sizes {
        grow(bench, &service, size)?;
        for share in SHARES {
            bench.say(&format!("{size} jobs, {share} % changed"));
            let cost = polls(bench, &service, |_| simulate_changes(&service, share))?;
            if size == sizes[0] && share == 0 {
                few_commands = median(&cost.commands);
            }
            let cpu = cost.row(&format!("{} active jobs, {share} % changed", grouped(size)));
            rows.push(if size == sizes[2] { cpu.at_most(1000.0) } else { cpu });
            if share == 0 {
                rows.push(
                    Row::of(
                        format!("remote commands per poll: {} active jobs", grouped(size)),
                        "",
                        &cost.commands,
                    )
                    .at_most(few_commands),
                );
                unchanged.push(median(&cost.cpu));
            }
        }
    }
    rows.push(
        Row::new(
            "CPU time per poll: factor for 10 times as many unchanged jobs",
            "×",
            unchanged[2] / unchanged[1],
        )
        .at_most(10.0)
        .note(format!("{} and {} jobs", grouped(sizes[2]), grouped(sizes[1]))),
    );
    rows.push(
        Row::new("resident memory with all jobs", "MB", number(service.usage()?.memory) / 1e6)
            .at_most(100.0)
            .note(format!(
                "{} active and {} finished jobs",
                grouped(sizes[2]),
                grouped(bench.size(90_000, 100))
            )),
    );
    Ok(())
}

/// Makes this percentage of the jobs look changed.
fn simulate_changes(service: &Service<'_>, share: u64) -> anyhow::Result<()> {
    if share > 0 {
        service.sql(&format!(
            "update jobs set message = 'an older message', pending_reason = 'None', version = version + 1 \
             where phase = 'in_queue' and get_byte(uuid_send(id), 15) * 100 < 256 * {share}"
        ))?;
    }
    Ok(())
}
