//! What a job tells of its use of nodes and GPUs.

use std::{fs, os::unix::fs::PermissionsExt, process::Output};

use remote::{BatchScript, GpuUse, UsageMarker};

use crate::node::{Node, on_nodes, stderr};

/// Tells the next line of a trace for each GPU, at once and so often, as the real one does with `--loop`; then it waits.
const NVIDIA_SMI: &str = r#"#!/bin/bash
printf '%s\n' "$*" >>"$SITE/nvidia-smi.args"
while read -r first second; do
  printf '0, %s, 1000, 81920\n1, %s, [N/A], 81920\n2, %s, 5000, 81920\n' "$first" "$second" "$second"
done <"$SITE/trace"
: >"$SITE/told.all"
exec sleep 600
"#;

/// Ends when the script has told of so many samples of each GPU.
const PATIENT: &str = r#"until grep -q " 0:$0:" "$SITE/state/usage" 2>/dev/null; do sleep 0.1; done"#;

fn node(trace: &[(u32, u32)]) -> Node {
    let node = Node::new();
    fs::write(node.file("bin/nvidia-smi"), NVIDIA_SMI).unwrap();
    fs::set_permissions(node.file("bin/nvidia-smi"), fs::Permissions::from_mode(0o755)).unwrap();
    let lines: Vec<String> = trace.iter().map(|(first, second)| format!("{first} {second}")).collect();
    fs::write(node.file("trace"), lines.join("\n") + "\n").unwrap();
    node
}

fn measuring(node: &Node, argv: &[&str]) -> BatchScript {
    BatchScript { usage_seconds: 1, ..node.script(argv) }
}

fn marker(node: &Node) -> UsageMarker {
    let text = node.read("state/usage");
    UsageMarker::read(text.lines().next().unwrap()).unwrap()
}

fn ended_well(output: &Output) {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
}

#[test]
fn a_trace_of_two_gpus_is_added_up() {
    let trace: Vec<(u32, u32)> = (0..90).map(|k| (k % 101, 100 - k)).collect();
    let node = node(&trace);
    ended_well(&node.run(&measuring(&node, &["bash", "-c", PATIENT, "90"]), 42, 1));
    let marker = marker(&node);
    assert_eq!((marker.slurm_id.get(), marker.restart), (42, 1));
    let [told] = marker.nodes.as_slice() else { panic!("{marker:?}") };
    assert_eq!(told.name, "node01");
    let sum = |part: fn(&(u32, u32)) -> u32| u64::from(trace.iter().map(part).sum::<u32>());
    let gpu =
        |index, sum, most, most_memory| GpuUse { index, samples: 90, sum, most, most_memory, memory: 81_920 };
    // What the driver does not know is left out.
    assert_eq!(told.gpus, [gpu(0, sum(|both| both.0), 89, 1000), gpu(2, sum(|both| both.1), 100, 5000)]);
}

#[test]
fn only_the_gpus_of_the_job_count() {
    let node = node(&[(1, 2)]);
    let script = measuring(&node, &["bash", "-c", PATIENT, "1"]);
    ended_well(&node.command(&script, 42, 0).env("CUDA_VISIBLE_DEVICES", "3,5").output().unwrap());
    let asked = "--id=3,5 --query-gpu=index,utilization.gpu,memory.used,memory.total --format=csv,noheader,nounits --loop=1\n";
    assert_eq!(node.read("nvidia-smi.args"), asked);
}

#[test]
fn a_node_without_gpus_tells_of_its_processors() {
    let node = Node::new();
    let busy = "until [ -e \"$SITE/state/usage\" ]; do :; done";
    ended_well(&node.run(&measuring(&node, &["bash", "-c", busy]), 42, 0));
    let marker = marker(&node);
    assert_eq!((marker.nodes.len(), marker.nodes[0].gpus.len()), (1, 0));
}

#[test]
fn the_other_nodes_are_measured_by_one_step_that_overlaps() {
    let node = node(&[(10, 20)]);
    let wait = r#"until [ -e "$SITE/told.all" ]; do sleep 0.1; done"#;
    ended_well(&node.run(&on_nodes(measuring(&node, &["bash", "-c", wait]), 2), 42, 0));
    let args = node.read("srun.args");
    let step = args.split("--export=ALL\0").find(|step| step.contains("--overlap\0")).unwrap();
    for option in ["--mem=0", "--nodelist=node04", "--ntasks=1", "--nodes=1"] {
        assert!(step.split('\0').any(|word| word == option), "{option}: {step:?}");
    }
}

#[test]
fn the_measurement_ends_with_the_script_and_is_not_its_result() {
    let node = node(&[(1, 2)]);
    // It is broken, and the job goes on.
    fs::write(node.file("bin/nvidia-smi"), "#!/bin/bash\nexit 9\n").unwrap();
    let output = node.run(&measuring(&node, &["bash", "-c", "exit 3"]), 42, 0);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(3), ""));
    assert_eq!(node.words("state/exit")[2], "3");
}
