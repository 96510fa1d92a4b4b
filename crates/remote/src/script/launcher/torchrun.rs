//! `PyTorch`'s launcher, one on each node.

use super::{Launcher, Site, Start};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// `PyTorch`'s launcher, one on each node. Each of its processes runs the command, with `RANK`, `LOCAL_RANK` and `WORLD_SIZE`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Torchrun {
    /// The processes on each node. Default: one for each GPU.
    pub nproc_per_node: Option<u32>,
    /// How the launchers meet.
    #[serde(default)]
    pub rendezvous: Rendezvous,
    /// Further words of torchrun.
    #[serde(default)]
    pub args: Vec<String>,
}

/// How the launchers of several nodes meet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rendezvous {
    /// By a store on the first node. The full name of that node must resolve on the others.
    #[default]
    C10d,
    /// By the number of each node and the first node's address.
    Static,
}

impl Launcher for Torchrun {
    fn starts(&self, site: &Site<'_>) -> Vec<Start> {
        let meeting = match self.rendezvous {
            // A run with the name of an earlier one could find that one's store.
            Rendezvous::C10d => format!(
                "--rdzv_backend=c10d --rdzv_id=\"{}.${{SLURM_RESTART_COUNT:-0}}\" \
                 --rdzv_endpoint=\"$MASTER_ADDR:$MASTER_PORT\"",
                site.run
            ),
            Rendezvous::Static => "--node_rank=\"$NODE_RANK\" --master_addr=\"$MASTER_ADDR\" \
                                   --master_port=\"$MASTER_PORT\""
                .to_owned(),
        };
        // Debian's PyTorch has the module alone. PyTorch 1 knows no option with a dash in its name.
        let text = format!(
            "launch=(torchrun); command -v torchrun >/dev/null || launch=(python3 -m torch.distributed.run); \
             exec \"${{launch[@]}}\" --nnodes=\"$NNODES\" --nproc_per_node=\"$NPROC_PER_NODE\" {meeting} --no_python \"$@\""
        );
        vec![Start::of_launcher(site, self.nproc_per_node, &text, &self.args)]
    }

    fn stands_between(&self) -> bool {
        true
    }
}
