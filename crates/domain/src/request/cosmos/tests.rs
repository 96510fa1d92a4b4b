use proptest::prelude::*;
use serde_json::json;
use test_case::test_case;

use super::components::environment;
use super::*;

fn specs(policy: &Value, rollout: &Value, kind: &str) -> Value {
    json!({
        "train": {"train_policy": {"type": kind}},
        "policy": {"parallelism": policy},
        "rollout": {"parallelism": rollout},
    })
}

/// Nodes of the policy and of the rollout.
fn shape(specs: &Value) -> (u32, u32) {
    let plan = plan(specs, 8).unwrap();
    (plan.policy.nodes, plan.rollout.map_or(0, |rollout| rollout.nodes))
}

#[test_case(&json!({}), &json!({}) => (1, 1) ; "one GPU each, when nothing is said")]
#[test_case(&json!({"tp_size": 8}), &json!({"tp_size": 4, "n_init_replicas": 3}) => (1, 2) ; "whole nodes, and two to a node")]
#[test_case(&json!({"tp_size": 4, "pp_size": 3}), &json!({}) => (2, 1) ; "twelve GPUs are two nodes")]
#[test_case(&json!({"tp_size": 8, "dp_shard_size": 4, "n_init_replicas": 2}), &json!({}) => (8, 1) ; "two replicas of four nodes")]
#[test_case(&json!({"tp_size": 3, "n_init_replicas": 5}), &json!({}) => (3, 1) ; "no replica is cut in two")]
#[test_case(&json!({"dp_shard_size": -1, "cp_size": 2}), &json!({}) => (1, 1) ; "an automatic shard size counts as one")]
#[test_case(&json!({"tp_size": null}), &json!({"tp_size": 8, "n_init_replicas": 2}) => (1, 2) ; "null is not said")]
fn nodes_hold_whole_replicas(policy: &Value, rollout: &Value) -> (u32, u32) {
    shape(&specs(policy, rollout, "grpo"))
}

#[test]
fn supervised_fine_tuning_has_no_rollout() {
    assert_eq!(shape(&specs(&json!({"tp_size": 8}), &json!({"tp_size": "nonsense"}), "sft")), (1, 0));
    assert_eq!(shape(&json!({"policy": {"parallelism": {"tp_size": 8}}})), (1, 1), "grpo is the default");
}

#[test_case(&json!({"tp_size": 13}), "/specs/policy/parallelism" ; "two nodes cannot share 13 GPUs")]
#[test_case(&json!({"tp_size": 0}), "/specs/policy/parallelism/tp_size" ; "zero")]
#[test_case(&json!({"pp_size": -2}), "/specs/policy/parallelism/pp_size" ; "negative")]
#[test_case(&json!({"cp_size": 1.5}), "/specs/policy/parallelism/cp_size" ; "a fraction")]
#[test_case(&json!({"n_init_replicas": "2"}), "/specs/policy/parallelism/n_init_replicas" ; "a text")]
#[test_case(&json!({"dp_shard_size": "x"}), "/specs/policy/parallelism/dp_shard_size" ; "a text for the shards")]
#[test_case(&json!({"tp_size": 8192, "pp_size": 8192, "cp_size": 8192, "dp_replicate_size": 8192, "dp_shard_size": 8192}), "/specs/policy/parallelism" ; "more than there are")]
#[test_case(&json!({"tp_size": 8, "n_init_replicas": 1025}), "/specs/policy/parallelism" ; "more nodes than can be asked for")]
fn an_impossible_shape_names_its_field(policy: &Value, pointer: &str) {
    let wrong = plan(&specs(policy, &json!({}), "grpo"), 8).unwrap_err();
    assert_eq!(wrong.iter().map(|fault| fault.pointer.as_str()).collect::<Vec<_>>(), [pointer]);
}

#[test]
fn each_node_gets_its_replicas() {
    let plan = plan(&specs(&json!({"tp_size": 12}), &json!({"tp_size": 3, "n_init_replicas": 3}), "grpo"), 8);
    let env = environment(&plan.unwrap()).unwrap();
    let read = |key: &str| -> Value {
        let (_, text) = env.iter().find(|(name, _)| name.as_str() == key).unwrap();
        serde_json::from_str(text).unwrap()
    };
    assert_eq!(
        read("NODE_LAUNCH_METADATA_POLICY"),
        json!([
            {"colocation": [{"nnode": 2, "role": "policy", "rendezvous_node": 0, "rendezvous_port": 29345, "visible_gpus": [0, 1, 2, 3, 4, 5]}]},
            {"colocation": [{"nnode": 2, "role": "policy", "rendezvous_node": 0, "rendezvous_port": 29345, "visible_gpus": [0, 1, 2, 3, 4, 5]}]},
        ])
    );
    assert_eq!(
        read("NODE_LAUNCH_METADATA_ROLLOUT"),
        json!([
            {"colocation": [
                {"nnode": 1, "role": "rollout", "rendezvous_node": 0, "rendezvous_port": 29345, "visible_gpus": [0, 1, 2]},
                {"nnode": 1, "role": "rollout", "rendezvous_node": 0, "rendezvous_port": 29346, "visible_gpus": [3, 4, 5]},
            ]},
            {"colocation": [{"nnode": 1, "role": "rollout", "rendezvous_node": 1, "rendezvous_port": 29345, "visible_gpus": [0, 1, 2]}]},
        ])
    );
    assert_eq!((read("TOTAL_NODES"), read("NUM_ROLLOUT_NODES")), (json!(4), json!(2)));
}

/// Nodes, GPUs of each, and whether they are exclusive; or the field that does not fit.
fn fitted(specs: &Value, asked: Requested) -> Result<(u32, u32, bool), String> {
    let request = crate::request::options_body::ResourcesRequest {
        num_nodes: asked.nodes,
        num_gpus: asked.gpus,
        gpus_per_node: asked.gpus_per_node,
        ..Default::default()
    };
    let resources = Resources::from_request(&request, &Resources::packaged().unwrap(), 4.0).unwrap();
    fit(specs, resources, asked)
        .map(|got| (got.nodes, got.gpus_per_node, got.exclusive))
        .map_err(|wrong| wrong[0].pointer.clone())
}

#[test]
fn the_specification_decides_how_many_nodes() {
    let small = specs(&json!({"tp_size": 2}), &json!({"tp_size": 4}), "grpo");
    let large = specs(&json!({"tp_size": 8}), &json!({"tp_size": 8}), "grpo");
    let gpus = |gpus| Requested { gpus: Some(gpus), ..Requested::default() };
    let nodes = |nodes| Requested { nodes: Some(nodes), ..Requested::default() };
    assert_eq!(fitted(&small, Requested::default()), Ok((1, 6, false)));
    assert_eq!(fitted(&small, gpus(8)), Ok((1, 8, true)));
    assert_eq!(fitted(&small, gpus(4)), Err("/resources/num_gpus".to_owned()));
    assert_eq!(fitted(&small, nodes(2)), Ok((2, 8, true)), "a node for each role, as requested");
    assert_eq!(fitted(&small, nodes(3)), Err("/resources/num_nodes".to_owned()));
    assert_eq!(fitted(&large, Requested::default()), Ok((2, 8, true)));
    assert_eq!(fitted(&large, gpus(16)), Ok((2, 8, true)));
    assert_eq!(fitted(&large, gpus(24)), Err("/resources/num_gpus".to_owned()));
    assert_eq!(fitted(&large, nodes(1)), Err("/resources/num_nodes".to_owned()));
}

#[test]
fn smaller_nodes_can_be_requested() {
    let asked = Requested { gpus_per_node: Some(2), ..Requested::default() };
    assert_eq!(
        fitted(&specs(&json!({"tp_size": 4}), &json!({"tp_size": 2}), "grpo"), asked),
        Ok((3, 2, true))
    );
}

proptest! {
    #[test]
    fn every_replica_has_its_gpus_and_no_node_more_than_it_has(
        gpus in 1_u64..40, replicas in 1_u64..20, node in 1_u32..17,
    ) {
        let specs = specs(&json!({"tp_size": gpus, "n_init_replicas": replicas}), &json!({}), "sft");
        if let Ok(plan) = plan(&specs, node) {
            let policy = plan.policy;
            let told = launch_nodes(&plan);
            prop_assert_eq!(told.len(), policy.nodes as usize);
            let on = |value: &Value| value["colocation"].as_array().unwrap().clone();
            let mut given = 0;
            for place in &told {
                let mut seen: Vec<u64> = Vec::new();
                for replica in on(place) {
                    seen.extend(replica["visible_gpus"].as_array().unwrap().iter().map(|gpu| gpu.as_u64().unwrap()));
                }
                given += seen.len() as u64;
                prop_assert!(seen.iter().all(|gpu| *gpu < u64::from(node)), "{seen:?} on a node of {node}");
                let all = seen.len();
                seen.sort_unstable();
                seen.dedup();
                prop_assert_eq!(seen.len(), all, "each GPU once");
            }
            prop_assert_eq!(given, gpus * replicas);
        } else {
            prop_assert!(gpus % gpus.div_ceil(u64::from(node)) != 0);
        }
    }

    #[test]
    fn no_specification_causes_a_panic(tp in any::<i64>(), pp in any::<i64>(), replicas in any::<i64>(), node in 0_u32..9) {
        let sizes = json!({"tp_size": tp, "pp_size": pp, "n_init_replicas": replicas, "dp_shard_size": tp});
        let _ = plan(&specs(&sizes, &sizes, "grpo"), node);
    }
}

fn launch_nodes(plan: &CosmosPlan) -> Vec<Value> {
    let env = environment(plan).unwrap();
    let (_, text) = env.iter().find(|(key, _)| key.as_str() == "NODE_LAUNCH_METADATA_POLICY").unwrap();
    serde_json::from_str(text).unwrap()
}
