//! `DeepSpeed`'s launcher, one on each node. Its usual front end would reach the other nodes by SSH.

use base64::{Engine as _, engine::general_purpose::URL_SAFE};

use super::{Launcher, Site, Start};
use serde::{Deserialize, Serialize};

/// `DeepSpeed`'s launcher, one on each node. Each of its processes runs the command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeepSpeed {
    /// The processes on each node. Default: one for each GPU.
    pub nproc_per_node: Option<u32>,
    /// Further words of the launcher.
    #[serde(default)]
    pub args: Vec<String>,
}

impl Launcher for DeepSpeed {
    fn starts(&self, site: &Site<'_>) -> Vec<Start> {
        // Any names of the nodes will do: each takes the entry of its number.
        let ids: Vec<u32> = (0..site.processes(self.nproc_per_node)).collect();
        let nodes: Vec<String> =
            (0..site.nodes.count).map(|node| format!("\"node{node:05}\": {ids:?}")).collect();
        let world = URL_SAFE.encode(format!("{{{}}}", nodes.join(", ")));
        let text = format!(
            "exec python3 -m deepspeed.launcher.launch --world_info={world} --node_rank=\"$NODE_RANK\" \
             --master_addr=\"$MASTER_ADDR\" --master_port=\"$MASTER_PORT\" --no_python --no_local_rank \"$@\""
        );
        vec![Start::of_launcher(site, self.nproc_per_node, &text, &self.args)]
    }

    fn stands_between(&self) -> bool {
        true
    }
}
