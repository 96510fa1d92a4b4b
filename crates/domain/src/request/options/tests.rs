use serde_json::json;
use test_case::test_case;

use super::*;
use crate::{
    cluster::target::Cluster,
    fixtures::cluster,
    request::{limits::too_late, spec::JobSpec},
};

/// A command with these resources and details.
#[expect(clippy::needless_pass_by_value, reason = "so that cases write them in place")]
fn request(resources: Value, details: Value) -> Value {
    json!({"command": "true", "resources": resources, "backend_details": details})
}

fn on(cluster: Cluster, request: Value) -> Result<JobSpec, Vec<String>> {
    let clusters = [cluster];
    let made = JobSpec::from_request(serde_json::from_value(request).unwrap(), &clusters);
    made.map(|(spec, ..)| spec).map_err(|faults| {
        faults.into_iter().map(|fault| format!("{} {}", fault.pointer, fault.code)).collect()
    })
}

fn faults(request: Value) -> Vec<String> {
    on(cluster(), request).err().unwrap_or_default()
}

#[test_case(&json!("64G"), "PerNode 64G" ; "a text")]
#[test_case(&json!("0"), "PerNode 0" ; "everything")]
#[test_case(&json!({"per_node": "512000"}), "PerNode 500G" ; "of a node")]
#[test_case(&json!({"per_cpu": "4G", "per_gpu": null}), "PerCpu 4G" ; "of a CPU")]
#[test_case(&json!({"per_gpu": "32G"}), "PerGpu 32G" ; "of a GPU")]
fn memory_has_one_meaning(memory: &Value, expected: &str) {
    let spec = on(cluster(), request(json!({"memory": memory}), json!({}))).unwrap();
    let seen = match spec.options.memory.unwrap() {
        MemoryRequest::PerNode(memory) => format!("PerNode {memory}"),
        MemoryRequest::PerCpu(memory) => format!("PerCpu {memory}"),
        MemoryRequest::PerGpu(memory) => format!("PerGpu {memory}"),
    };
    assert_eq!(seen, expected);
}

#[test_case(json!({"memory": {"per_cpu": "4G", "per_gpu": "1G"}}), &["/resources/memory contradiction"] ; "two kinds of memory")]
#[test_case(json!({"memory": {}}), &["/resources/memory required"] ; "no kind of memory")]
#[test_case(json!({"memory": {"per_task": "1G"}}), &["/resources/memory/per_task unknown_field", "/resources/memory required"] ; "another kind")]
#[test_case(json!({"memory": 64}), &["/resources/memory wrong_type"] ; "a number")]
#[test_case(json!({"memory": {"per_cpu": "0"}}), &["/resources/memory/per_cpu out_of_range"] ; "no memory")]
#[test_case(json!({"memory": "64 GB"}), &["/resources/memory invalid"] ; "another unit")]
#[test_case(json!({"memory": {"per_gpu": "1G"}, "num_gpus": 0}), &["/resources/memory/per_gpu contradiction"] ; "memory of no GPU")]
#[test_case(json!({"gpu_type": "a100", "gpus_per_node": 0}), &["/resources/gpu_type contradiction"] ; "the type of no GPU")]
#[test_case(json!({"gpu_type": "8"}), &["/resources/gpu_type invalid"] ; "a count as type")]
#[test_case(json!({"gres": [{"name": "mps", "count": 0}]}), &["/resources/gres/0/count out_of_range"] ; "none of it")]
#[test_case(json!({"gres": [{"name": "m,s"}]}), &["/resources/gres/0/name invalid"] ; "two names")]
#[test_case(json!({"gres": [{"name": "mps"}, {"name": "mps"}]}), &["/resources/gres/1 repeated"] ; "the same twice")]
#[test_case(json!({"gres": [{"name": "mps", "count": 50}], "num_gpus": 1}), &["/resources/gres contradiction"] ; "GPUs and their parts")]
#[test_case(json!({"gres": [{"name": "mps"}, {"name": "gpu", "type": "a100"}]}), &["/resources/gres contradiction"] ; "parts and GPUs in one list")]
#[test_case(json!({"constraint": "a b"}), &["/resources/constraint invalid"] ; "a space")]
#[test_case(json!({"nodelist": "node[01-02]"}), &["/resources/nodelist contradiction"] ; "more nodes than the job gets")]
#[test_case(json!({"nodelist": "node01", "exclude": "node[01-02]"}), &["/resources/exclude contradiction"] ; "a node wanted and not")]
#[test_case(json!({"exclude": "/etc/passwd"}), &["/resources/exclude invalid"] ; "a file")]
#[test_case(json!({"licenses": "a b"}), &["/resources/licenses invalid"] ; "no license")]
#[test_case(json!({"switches": "few"}), &["/resources/switches invalid"] ; "no number")]
#[test_case(json!({"tasks_per_node": 0}), &["/resources/tasks_per_node out_of_range"] ; "no task")]
fn a_wrong_resource_names_its_field(resources: Value, expected: &[&str]) {
    assert_eq!(faults(request(resources, json!({}))), expected);
}

#[test_case(json!({"account": "-x"}), &["/backend_details/account invalid"] ; "account")]
#[test_case(json!({"qos": "a,b"}), &["/backend_details/qos invalid"] ; "qos")]
#[test_case(json!({"reservation": ""}), &["/backend_details/reservation invalid"] ; "reservation")]
#[test_case(json!({"nice": 2_147_483_647}), &["/backend_details/nice out_of_range"] ; "nice")]
#[test_case(json!({"begin": "16:00"}), &["/backend_details/begin invalid"] ; "begin")]
#[test_case(json!({"begin": "now+2hours", "deadline": "now+1hour"}), &["/backend_details/deadline contradiction"] ; "ends before it begins")]
#[test_case(json!({"deadline": "now+1hour"}), &["/backend_details/deadline contradiction"] ; "ends before its time limit")]
#[test_case(json!({"begin": "now+1hour", "deadline": "now+4hours"}), &["/backend_details/deadline contradiction"] ; "begins too late for its time limit")]
#[test_case(json!({"begin": "2030-01-01T00:00:00Z", "deadline": "2030-01-01T03:00:00Z"}), &["/backend_details/deadline contradiction"] ; "dates that leave too little time")]
#[test_case(json!({"begin": "now+1hour", "deadline": "now+6hours"}), &[] ; "a deadline that leaves time")]
#[test_case(json!({"comment": "a\nb"}), &["/backend_details/comment invalid"] ; "comment")]
#[test_case(json!({"sbatch_options": {"Hint": 1}}), &["/backend_details/sbatch_options/Hint invalid"] ; "a name")]
#[test_case(json!({"sbatch_options": {"hint": "a\n#SBATCH --uid=0"}}), &["/backend_details/sbatch_options/hint invalid"] ; "a second line")]
#[test_case(json!({"sbatch_options": {"hint": ["a"]}}), &["/backend_details/sbatch_options/hint wrong_type"] ; "a list")]
#[test_case(json!({"sbatch_options": {"output": "/tmp/x"}}), &["/backend_details/sbatch_options/output reserved"] ; "an owned option")]
#[test_case(json!({"sbatch_options": {"outp": "/tmp/x"}}), &["/backend_details/sbatch_options/outp reserved"] ; "the beginning of an owned option")]
#[test_case(json!({"sbatch_options": {"time": null}}), &["/backend_details/sbatch_options/time reserved"] ; "a line that the service needs")]
#[test_case(json!({"sbatch_options": {"mem": "1G"}}), &["/backend_details/sbatch_options/mem reserved"] ; "an option with a field")]
fn a_wrong_detail_names_its_field(details: Value, expected: &[&str]) {
    assert_eq!(faults(request(json!({}), details)), expected);
}

#[test_case("2026-12-01T00:00:00Z", Some("is over: name a later time, or leave it out") ; "it is over")]
#[test_case("2026-12-01T09:29:00+01:00", Some("is over: name a later time, or leave it out") ; "over with an offset")]
#[test_case("2026-12-01T09:00:00Z", Some("leaves 30 minutes, and the job's time limit is 240: Slurm would never start it; request less time, or a later deadline") ; "too near")]
#[test_case("2026-12-01T12:30:00Z", None ; "just enough")]
#[test_case("2026-11-30", Some("is over: name a later time, or leave it out") ; "over in all zones")]
#[test_case("2026-12-01T01:00:00", None ; "enough in the westernmost zone")]
#[test_case("now+5hours", None ; "after its creation")]
fn a_deadline_that_nothing_can_keep_is_refused(deadline: &str, expected: Option<&str>) {
    let spec = on(cluster(), request(json!({}), json!({"deadline": deadline}))).unwrap();
    let violation = too_late(&spec, "2026-12-01T08:30:00Z".parse().unwrap());
    assert_eq!(violation.map(|violation| violation.detail).as_deref(), expected);
}

#[test]
fn a_refused_option_says_what_to_use() {
    let body = request(json!({}), json!({"sbatch_options": {"time": "1:00"}}));
    let clusters = [cluster()];
    let faults = JobSpec::from_request(serde_json::from_value(body).unwrap(), &clusters).unwrap_err();
    assert_eq!(faults[0].detail, "belongs to the service; use resources.time_hours instead");
}

#[test]
fn other_options_keep_their_values() {
    let options = json!({"hint": "nomultithread", "threads-per-core": 1, "contiguous": true, "mem": null, "gres": false});
    let spec = on(cluster(), request(json!({}), json!({"sbatch_options": options}))).unwrap();
    let text = |text: &str| OptionValue::Text(text.parse().unwrap());
    let expected = [
        ("contiguous", OptionValue::Flag),
        ("gres", OptionValue::Drop),
        ("hint", text("nomultithread")),
        ("mem", OptionValue::Drop),
        ("threads-per-core", text("1")),
    ];
    let seen: Vec<_> =
        spec.options.others.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    assert_eq!(seen, expected);
}

#[test]
fn parts_of_gpus_take_the_place_of_the_default_gpus() {
    let gpus = |gres: Value| {
        let spec = on(cluster(), request(json!({"gres": gres}), json!({}))).unwrap();
        (spec.resources.gpus_per_node, spec.resources.exclusive)
    };
    assert_eq!(gpus(json!([{"name": "mps", "count": 50}])), (0, false));
    assert_eq!(
        gpus(json!([{"name": "gpu", "type": "1g.5gb", "count": 2}, {"name": "gpu", "type": "2g.10gb"}])),
        (3, false)
    );
    assert_eq!(gpus(json!([{"name": "nvme"}])), (4, false), "another resource changes no GPU");
}

#[test]
fn a_job_overrides_the_clusters_defaults_one_by_one() {
    let mut cluster = cluster();
    cluster.submit.exclusive = Some(true);
    cluster.submit.options = SubmitOptions {
        qos: Some("normal".parse().unwrap()),
        constraint: Some("ib".parse().unwrap()),
        others: cluster_options(json!({"hint": "nomultithread", "mem": false}).as_object().unwrap()).unwrap(),
        ..SubmitOptions::default()
    };
    let spec = on(cluster.clone(), request(json!({}), json!({}))).unwrap();
    assert_eq!(spec.options.account, Some("team".parse().unwrap()), "the cluster's account");
    assert_eq!((spec.options.qos.unwrap().as_str(), spec.resources.exclusive), ("normal", true));
    let details = json!({"qos": "high", "account": "other", "sbatch_options": {"hint": null}});
    let spec = on(cluster, request(json!({"exclusive": false}), details)).unwrap();
    assert_eq!(spec.options.account, Some("other".parse().unwrap()));
    assert_eq!(spec.options.qos.as_ref().unwrap().as_str(), "high");
    assert_eq!(spec.options.constraint.as_ref().unwrap().as_str(), "ib");
    assert!(spec.options.drops("hint") && spec.options.drops("mem") && !spec.resources.exclusive);
}

#[test]
fn a_tao_job_has_one_task_on_each_node() {
    let mut body = json!({"network_arch": "dino", "action": "train", "image": "nvcr.io/nvidia/tao:6", "resources": {"tasks_per_node": 2}});
    assert_eq!(faults(body.clone()), ["/resources/tasks_per_node contradiction"]);
    body["resources"] = json!({"tasks_per_node": 1});
    assert_eq!(faults(body), Vec::<String>::new());
}

#[test]
fn a_stored_job_of_an_earlier_release_has_no_options() {
    let spec = on(cluster(), request(json!({}), json!({}))).unwrap();
    let mut stored = serde_json::to_value(&spec).unwrap();
    stored.as_object_mut().unwrap().remove("options");
    stored["resources"].as_object_mut().unwrap().remove("tasks_per_node");
    let read: JobSpec = serde_json::from_value(stored).unwrap();
    assert_eq!(read.options, SubmitOptions::default());
    assert_eq!(read.resources.tasks_per_node, 1);
}

#[test]
fn a_stored_job_keeps_its_options() {
    let resources = json!({
        "memory": {"per_cpu": "4G"}, "gpu_type": "a100", "constraint": "ib", "nodelist": "node01", "exclude": "node02",
        "licenses": "matlab:2", "switches": "1", "tasks_per_node": 2, "gres": [{"name": "nvme", "count": 2}],
    });
    let details = json!({
        "qos": "high", "reservation": "course", "nice": 5, "comment": "x y", "begin": "now+1hour",
        "deadline": "2030-01-01T00:00:00Z", "sbatch_options": {"hint": "nomultithread", "mem": null},
    });
    let spec = on(cluster(), request(resources, details)).unwrap();
    assert_eq!(serde_json::from_value::<JobSpec>(serde_json::to_value(&spec).unwrap()).unwrap(), spec);
}

#[test]
fn the_options_of_a_cluster_are_checked_by_the_same_rules() {
    let faults = cluster_options(json!({"output": "x", "hint": 1}).as_object().unwrap()).unwrap_err();
    assert_eq!((faults.len(), faults[0].pointer.as_str(), faults[0].code), (1, "/output", "reserved"));
}
