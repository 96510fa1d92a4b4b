//! The output of sinfo and scontrol about partitions and nodes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use remote::{NodeHealth, Partitions, RawOutput, RemoteCommand};

fuzz_target!(|stdout: &[u8]| {
    let raw = RawOutput { stdout: stdout.to_vec(), ..RawOutput::default() };
    if let Ok(answer) = Partitions.parse(&raw) {
        assert!(answer.partitions.len() <= stdout.len());
    }
    let nodes = ["node01", "node02"].iter().filter_map(|name| name.parse().ok()).collect();
    let query = NodeHealth { nodes };
    if let Ok(answer) = query.parse(&raw) {
        // Only requested nodes may be reported as sick.
        let sick = answer.sick.unwrap_or_default();
        assert!(sick.keys().all(|name| query.nodes.contains(name)));
    }
});
