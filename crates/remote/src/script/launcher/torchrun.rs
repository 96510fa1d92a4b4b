//! `PyTorch`'s launcher, one on each node.

use super::{Launcher, Processes, Site, Start};

/// `PyTorch`'s launcher, one on each node. Each of its processes runs the command, with `RANK`, `LOCAL_RANK` and `WORLD_SIZE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Torchrun {
    /// The processes on each node.
    pub processes: Processes,
    /// How the launchers meet.
    pub rendezvous: Rendezvous,
    /// Further words of torchrun.
    pub args: Vec<String>,
}

/// How the launchers of several nodes meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rendezvous {
    /// By a store on the first node. The full name of that node must resolve on the others.
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
        vec![Start::of_launcher(site, self.processes, &text, &self.args)]
    }

    fn stands_between(&self) -> bool {
        true
    }
}
