//! `DeepSpeed`'s launcher, one on each node. Its usual front end would reach the other nodes by SSH.

use base64::{Engine as _, engine::general_purpose::URL_SAFE};

use super::{Launcher, Processes, Site, Start};

/// `DeepSpeed`'s launcher, one on each node. Each of its processes runs the command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeepSpeed {
    /// The processes on each node.
    pub processes: Processes,
    /// Further words of the launcher.
    pub args: Vec<String>,
}

impl Launcher for DeepSpeed {
    fn starts(&self, site: &Site<'_>) -> Vec<Start> {
        // Any names of the nodes will do: each takes the entry of its number.
        let ids: Vec<u32> = (0..self.processes.on(site)).collect();
        let nodes: Vec<String> =
            (0..site.nodes.count).map(|node| format!("\"node{node:05}\": {ids:?}")).collect();
        let world = URL_SAFE.encode(format!("{{{}}}", nodes.join(", ")));
        let text = format!(
            "exec python3 -m deepspeed.launcher.launch --world_info={world} --node_rank=\"$NODE_RANK\" \
             --master_addr=\"$MASTER_ADDR\" --master_port=\"$MASTER_PORT\" --no_python --no_local_rank \"$@\""
        );
        vec![Start::of_launcher(site, self.processes, &text, &self.args)]
    }

    fn stands_between(&self) -> bool {
        true
    }
}
