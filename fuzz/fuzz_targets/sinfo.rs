//! What sinfo and scontrol say of partitions and nodes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use remote::{NodeHealth, Partitions, RawOutput, RemoteCommand};

fuzz_target!(|stdout: &[u8]| {
    let raw = RawOutput { stdout: stdout.to_vec(), ..RawOutput::default() };
    if let Ok(answer) = Partitions.parse(&raw) {
        assert!(answer.partitions.len() <= stdout.len());
    }
    let nodes = ["node01", "node02"].iter().filter_map(|name| name.parse().ok()).collect();
    let asked = NodeHealth { nodes };
    if let Ok(answer) = asked.parse(&raw) {
        // A node that nobody asked about is not called sick.
        let sick = answer.sick.unwrap_or_default();
        assert!(sick.keys().all(|name| asked.nodes.contains(name)));
    }
});
