//! What one look at the cluster costs, with few and with many jobs, of which none, few or all have changed. The jobs are real:
//! they wait in a partition that is down. That one has changed is brought about on our side, by writing down something else of
//! it than the cluster says: for the service the two are the same.

use crate::{
    Bench,
    polls::{grow, plan, polls},
    row::Row,
    sandbox::ROOM,
    service::Service,
    stats::{median, number},
    stock,
};

const SHARES: [u64; 3] = [0, 1, 100];

pub(crate) fn run(bench: &Bench, rows: &mut Vec<Row>) -> anyhow::Result<()> {
    let sizes = [10, bench.size(1000, 20), bench.size(10_000, 40)];
    // Before the service starts, which asks for the cluster's partitions then.
    let _closed = bench.sandbox.close(ROOM)?;
    let mut service = Service::start(bench, &plan())?;
    let template = stock::template(bench, &service)?;
    stock::fill(&mut service, &template, 0, bench.size(90_000, 100) as u64)?;
    let (mut few_commands, mut unchanged) = (0.0, Vec::new());
    for size in sizes {
        grow(bench, &service, size)?;
        for share in SHARES {
            bench.say(&format!("{size} jobs, {share} % of them changed"));
            let cost = polls(bench, &service, |_| pretend(&service, share))?;
            if size == sizes[0] && share == 0 {
                few_commands = median(&cost.commands);
            }
            let cpu = cost.row(&format!("{size} active jobs, {share} % changed"));
            rows.push(if size == sizes[2] { cpu.at_most(1000.0) } else { cpu });
            if share == 0 {
                rows.push(
                    Row::of(format!("remote commands for a poll: {size} active jobs"), "", &cost.commands)
                        .at_most(few_commands),
                );
                unchanged.push(median(&cost.cpu));
            }
        }
    }
    rows.push(
        Row::new("processor for a poll of 10 times as many unchanged jobs", "×", unchanged[2] / unchanged[1])
            .at_most(10.0)
            .note(format!("{} against {} jobs", sizes[2], sizes[1])),
    );
    rows.push(
        Row::new("resident memory with all of them", "MB", number(service.usage()?.memory) / 1e6)
            .at_most(100.0)
            .note(format!("{} active, {} that have ended", sizes[2], bench.size(90_000, 100))),
    );
    Ok(())
}

/// So many percent of the jobs look changed.
fn pretend(service: &Service<'_>, share: u64) -> anyhow::Result<()> {
    if share > 0 {
        service.sql(&format!(
            "update jobs set message = 'as it was before', pending_reason = 'None', version = version + 1 \
             where phase = 'in_queue' and get_byte(uuid_send(id), 15) * 100 < 256 * {share}"
        ))?;
    }
    Ok(())
}
