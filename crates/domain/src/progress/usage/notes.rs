//! What the figures of a run mean, in words.

use super::Usage;
use crate::cluster::resources::counted;

/// Below this much use in percent a note says what to ask for instead.
const LITTLE: f64 = 20.0;
/// Too early for advice: a program loads its data first.
const EARLY: i64 = 600;

/// What a run holds on all its nodes together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Held {
    pub cpus: u32,
}

/// One sentence for each thing that its owner should know.
pub fn notes(usage: &Usage, held: Option<Held>) -> Vec<String> {
    let mut notes = Vec::new();
    gpu_time(usage, &mut notes);
    gpu_memory(usage, &mut notes);
    processors(usage, held, &mut notes);
    notes
}

fn gpu_time(usage: &Usage, notes: &mut Vec<String>) {
    let Some(mean) = usage.mean_percent() else { return };
    let all = usage.gpus().count();
    let unused = usage.gpus().filter(|(_, gpu)| gpu.most == 0).count();
    let unused = match (unused, all - unused) {
        (0, _) => String::new(),
        (1, 0) => ", never used: does the program see it?".to_owned(),
        (_, 0) => ", none of them ever used: does the program see them?".to_owned(),
        (1, used) => format!(", one of them never: ask for {used}"),
        (_, used) => format!(", {unused} of them never: ask for {used}"),
    };
    notes.push(ended(format!("{}, {mean:.0} % used on average{unused}", counted(all as u64, "GPU"))));
    let is_slow = mean < LITTLE && unused.is_empty() && usage.at - usage.began >= EARLY;
    if is_slow {
        let note = "The GPUs wait for most of the time. Often the data do not come fast enough: more data workers, or a \
                    larger batch, may help.";
        notes.push(note.to_owned());
    }
}

fn gpu_memory(usage: &Usage, notes: &mut Vec<String>) {
    let Some((_, fullest)) = usage.gpus().max_by_key(|(_, gpu)| gpu.most_memory) else { return };
    if fullest.memory == 0 || usage.mean_percent().is_none_or(|mean| mean == 0.0) {
        return;
    }
    let mut note = format!(
        "At most {} of the {} GiB of a GPU were in use",
        gib(fullest.most_memory),
        gib(fullest.memory)
    );
    let is_early = usage.at - usage.began < EARLY;
    if !is_early && fullest.most_memory.saturating_mul(4) < fullest.memory {
        note += ": a larger batch, or a smaller type of GPU, would do";
    }
    notes.push(ended(note));
}

fn processors(usage: &Usage, held: Option<Held>, notes: &mut Vec<String>) {
    let seconds: u64 = usage.nodes.iter().map(|node| node.cpu_seconds).sum();
    let time = u64::try_from(usage.at - usage.began).unwrap_or(0);
    if let Some(Held { cpus }) = held.filter(|held| held.cpus > 0 && time > 0) {
        let percent = super::ratio(seconds, u64::from(cpus) * time) * 100.0;
        notes.push(format!("{}, {percent:.0} % used on average.", counted(cpus.into(), "CPU")));
    }
    if let Some(most) = usage.nodes.iter().map(|node| node.most_memory).max().filter(|most| *most > 0) {
        let node = if usage.nodes.len() == 1 { "the node" } else { "a node" };
        notes.push(format!("At most {} GiB of the memory of {node} were in use.", gib(most)));
    }
}

fn ended(mut note: String) -> String {
    if !note.ends_with('?') {
        note.push('.');
    }
    note
}

/// Mebibytes as gibibytes.
fn gib(mebibytes: u64) -> String {
    format!("{:.1}", super::ratio(mebibytes, 1024))
}
