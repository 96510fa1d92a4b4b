//! Memory, processors, resources and words against what the cluster reported.

use std::collections::BTreeMap;

use slurm::{Associations, MemoryRequest};
use test_case::test_case;

use super::*;

/// `gpu` has 8 GPUs of two types in a node, `cpu` has none.
fn reported() -> ReportedLimits {
    let set = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<BTreeSet<String>>();
    let gres = |gres: &[(&str, u64)]| gres.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
    let mut associations = Associations::new("associations,qos");
    associations.accounts = BTreeMap::from([
        ("team".to_owned(), set(&["normal", "high"])),
        ("far".to_owned(), set(&["low"])),
        ("open".to_owned(), set(&[])),
    ]);
    let mut gpu = partition("gpu", Some(24.0), 8);
    gpu.associations = Some(associations.clone());
    gpu.nodes[0].gres = Some(gres(&[("gpu:a100", 6), ("gpu:1g.5gb", 2), ("mps", 600)]));
    gpu.nodes[0].features = Some(set(&["a100", "nvlink"]));
    gpu.nodes[0].memory_mib = 512_000;
    let mut cpu = partition("cpu", Some(24.0), 0);
    cpu.associations = Some(associations);
    cpu.nodes[0].gres = Some(BTreeMap::new());
    cpu.nodes[0].features = Some(set(&[]));
    cpu.nodes[0].memory_mib = 256_000;
    ReportedLimits {
        partitions: vec![gpu, cpu],
        all_must_allow: false,
        at: DateTime::UNIX_EPOCH,
        fresh: true,
    }
}

fn job(change: impl FnOnce(&mut JobSpec)) -> JobSpec {
    let mut spec = asks(1.0, 2, "gpu");
    change(&mut spec);
    spec
}

/// The pointer and the code of each violation, then of each doubt.
fn both(spec: &JobSpec, reported: ReportedLimits) -> (Vec<String>, Vec<String>) {
    let limits = limits(Some(reported));
    let shown =
        |found: Vec<Violation>| found.iter().map(|one| format!("{} {}", one.pointer, one.code)).collect();
    (shown(check(spec, &limits)), shown(doubts(spec, &limits)))
}

fn refused(spec: &JobSpec) -> Vec<String> {
    let (refused, doubts) = both(spec, reported());
    assert_eq!(doubts, Vec::<String>::new());
    refused
}

fn memory(request: fn(slurm::Memory) -> MemoryRequest, amount: &str) -> JobSpec {
    job(|spec| spec.options.memory = Some(request(amount.parse().unwrap())))
}

#[test_case(MemoryRequest::PerNode, "512000" => Vec::<String>::new() ; "all of a node")]
#[test_case(MemoryRequest::PerNode, "512001" => vec!["/resources/memory memory_limit"] ; "more than a node")]
#[test_case(MemoryRequest::PerCpu, "31G" => Vec::<String>::new() ; "16 CPUs")]
#[test_case(MemoryRequest::PerCpu, "32G" => vec!["/resources/memory/per_cpu memory_limit"] ; "more for 16 CPUs")]
#[test_case(MemoryRequest::PerGpu, "250G" => Vec::<String>::new() ; "2 GPUs")]
#[test_case(MemoryRequest::PerGpu, "251G" => vec!["/resources/memory/per_gpu memory_limit"] ; "more for 2 GPUs")]
fn memory_is_that_of_one_node(request: fn(slurm::Memory) -> MemoryRequest, amount: &str) -> Vec<String> {
    refused(&memory(request, amount))
}

#[test]
fn a_limit_that_is_not_known_refuses_nothing() {
    let mut unsure = reported();
    unsure.partitions[0].nodes[0].some_have_more = true;
    let mut spec = memory(MemoryRequest::PerNode, "9T");
    spec.resources.cpus_per_task = 4000;
    assert!(check(&spec, &limits(Some(unsure))).is_empty(), "some nodes have more");
    assert!(check(&spec, &limits(None)).is_empty(), "nothing was reported");
    let mut unread = reported();
    (unread.partitions[0].nodes[0].gres, unread.partitions[0].nodes[0].features) = (None, None);
    unread.partitions[0].associations = None;
    let spec = job(|spec| {
        spec.options.gpu_type = Some("h100".parse().unwrap());
        spec.options.qos = Some("what".parse().unwrap());
    });
    assert_eq!(both(&spec, unread), (vec![], vec![]));
}

#[test]
fn the_detail_has_the_limit_and_where_it_came_from() {
    let (_, _, detail) = one(&memory(MemoryRequest::PerCpu, "32G"), &limits(Some(reported())));
    assert_eq!(
        detail,
        "is 32G for each of 16 CPUs, 524288 MiB on each node; no node of gpu has more than 512000 MiB (sinfo, \
         1970-01-01 00:00 UTC). Request less"
    );
}

#[test]
fn all_tasks_of_a_node_need_its_processors() {
    let tasks = |tasks| refused(&job(|spec| spec.resources.tasks_per_node = tasks));
    assert_eq!(tasks(4), Vec::<String>::new());
    assert_eq!(tasks(5), ["/resources/cpus_per_task cpu_limit"]);
    let spec = job(|spec| {
        spec.resources.tasks_per_node = 5;
        spec.options.others.insert("cpus-per-task".parse().unwrap(), slurm::OptionValue::Drop);
    });
    assert_eq!(refused(&spec), Vec::<String>::new(), "a dropped line asks for nothing");
}

#[test_case("mps:600" => Vec::<String>::new() ; "all")]
#[test_case("mps:601" => vec!["/resources/gres/0 gres_limit"] ; "too much")]
#[test_case("shard:1" => vec!["/resources/gres/0 unknown_gres"] ; "what no node has")]
#[test_case("gpu:1g.5gb:2" => Vec::<String>::new() ; "a type")]
#[test_case("gpu:2g.10gb:1" => vec!["/resources/gres/0 unknown_gres"] ; "a type that no node has")]
fn resources_are_those_of_one_node(gres: &str) -> Vec<String> {
    refused(&job(|spec| spec.options.gres = vec![gres.parse().unwrap()]))
}

#[test]
fn a_type_of_gpus_must_exist_in_that_number() {
    let typed = |kind: &str, count| {
        refused(&job(|spec| {
            spec.options.gpu_type = Some(kind.parse().unwrap());
            spec.resources.gpus_per_node = count;
        }))
    };
    assert_eq!(typed("a100", 6), Vec::<String>::new());
    assert_eq!(typed("a100", 7), ["/resources/gpu_type gres_limit"]);
    assert_eq!(typed("h100", 1), ["/resources/gpu_type unknown_gpu_type"]);
}

#[test_case("a100&nvlink" => Vec::<String>::new() ; "both")]
#[test_case("a100&ib" => vec!["/resources/constraint unknown_feature"] ; "one that no node has")]
#[test_case("[a100*2&nvlink*3]" => Vec::<String>::new() ; "counts are no features")]
fn features_are_those_of_the_partitions(constraint: &str) -> Vec<String> {
    refused(&job(|spec| spec.options.constraint = Some(constraint.parse().unwrap())))
}

#[test_case("team", None => Vec::<String>::new() ; "an account")]
#[test_case("other", None => vec!["/backend_details/account unknown_account"] ; "another account")]
#[test_case("team", Some("high") => Vec::<String>::new() ; "its QOS")]
#[test_case("team", Some("low") => vec!["/backend_details/qos unknown_qos"] ; "the QOS of another account")]
#[test_case("open", Some("any") => Vec::<String>::new() ; "an account without a list")]
fn accounts_and_qos_are_the_users(account: &str, qos: Option<&str>) -> Vec<String> {
    refused(&job(|spec| {
        spec.options.account = Some(account.parse().unwrap());
        spec.options.qos = qos.map(|qos| qos.parse().unwrap());
    }))
}

#[test]
fn a_doubtful_word_is_a_warning() {
    let spec = job(|spec| {
        spec.options.gpu_type = Some("h100".parse().unwrap());
        spec.options.constraint = Some("ib".parse().unwrap());
        spec.options.account = Some("other".parse().unwrap());
    });
    let old = ReportedLimits { fresh: false, ..reported() };
    let words = vec![
        "/resources/gpu_type unknown_gpu_type".to_owned(),
        "/resources/constraint unknown_feature".to_owned(),
        "/backend_details/account unknown_account".to_owned(),
    ];
    assert_eq!(both(&spec, old), (vec![], words.clone()), "an old report may lack new words");
    let mut lenient = reported();
    let own = lenient.partitions[0].associations.as_mut().unwrap();
    (own.enforced, own.qos_enforced) = (false, false);
    assert_eq!(both(&spec, lenient), (words[..2].to_vec(), words[2..].to_vec()), "Slurm takes any account");
}
