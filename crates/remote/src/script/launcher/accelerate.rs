//! Hugging Face's launcher, one on each node.

use super::{Launcher, Site, Start};
use serde::{Deserialize, Serialize};

/// Hugging Face's launcher, one on each node. Each of its processes runs the command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accelerate {
    /// The processes on each node. Default: one for each GPU.
    pub nproc_per_node: Option<u32>,
    /// Further words of `accelerate launch`, such as `--mixed_precision=bf16`.
    #[serde(default)]
    pub args: Vec<String>,
}

impl Launcher for Accelerate {
    fn starts(&self, site: &Site<'_>) -> Vec<Start> {
        let text = "exec accelerate launch --num_machines=\"$NNODES\" \
                    --num_processes=\"$((NNODES * NPROC_PER_NODE))\" --machine_rank=\"$NODE_RANK\" \
                    --main_process_ip=\"$MASTER_ADDR\" --main_process_port=\"$MASTER_PORT\" --no_python \"$@\"";
        vec![Start::of_launcher(site, self.nproc_per_node, text, &self.args)]
    }

    fn stands_between(&self) -> bool {
        true
    }
}
