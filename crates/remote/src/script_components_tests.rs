//! The batch scripts of several components.

use super::*;

fn role(name: &str, kind: Kind, first: u32, count: u32) -> Component {
    let role = Value::Text(name.to_owned());
    Component {
        name: name.parse().unwrap(),
        kind,
        nodes: Nodes { first, count },
        place: Place::Pyxis(Container { without_home: true, ..container() }),
        lightning_safe: false,
        log: Log::Own,
        cuda: Some("12.8".parse::<CudaVersion>().unwrap()),
        variables: vec![("COSMOS_NODE_ROLE".parse().unwrap(), role)],
        ..training(count)
    }
}

/// Cosmos-RL with two nodes for the policy and one for the rollout.
pub(super) fn cosmos() -> BatchScript {
    let directives =
        Directives { nodes: 3, gpus_per_node: 8, exclusive: true, all_memory: true, ..base().directives };
    BatchScript {
        directives,
        variables: vec![
            ("COSMOS_CONTROLLER_HOST".parse().unwrap(), Value::HostPort(0, 8082)),
            ("POLICY_NODES".parse().unwrap(), Value::Hosts(Nodes { first: 0, count: 2 })),
        ],
        components: vec![
            role("controller", Kind::Step, 0, 1),
            role("policy", Kind::With, 0, 2),
            role("rollout", Kind::With, 2, 1),
        ],
        ..base()
    }
}

#[test]
fn cosmos_on_three_nodes() {
    golden("cosmos", &cosmos());
}

#[test]
fn a_plain_component_has_one_process_on_the_first_of_its_nodes() {
    let mut script = on_two_hosts();
    script.components[0].launcher = Arc::new(Plain);
    let text = rendered(&script);
    assert!(text.contains("srun --nodes=1 --ntasks=1 --nodelist=\"$(_tao_slice 0 1 ,)\" "), "{text}");
    assert!(!text.contains("WORLD_SIZE"), "{text}");
}
