//! Complete batch scripts, one file for each kind of job.

use super::{
    launcher::{Accelerate, Bootstrap, DeepSpeed, Launcher, Mpi, Ray, Rendezvous, Torchrun},
    *,
};

fn role(name: &str, kind: Kind, first: u32, count: u32) -> Component {
    let role = Value::Text(name.to_owned());
    Component {
        name: name.parse().unwrap(),
        kind,
        nodes: Nodes { first, count },
        place: Place::Pyxis(Container { home: Some(false), ..container() }),
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

/// A command that a launcher starts on two nodes of four GPUs.
fn launched(launcher: impl Launcher + 'static) -> BatchScript {
    let mut script = on_two_hosts();
    script.directives.gpus_per_node = 4;
    script.components[0].launcher = Arc::new(launcher);
    script
}

fn torchrun(rendezvous: Rendezvous) -> Torchrun {
    Torchrun { nproc_per_node: None, rendezvous, args: words(&["--max-restarts=3"]) }
}

fn ray(bootstrap: Bootstrap) -> Ray {
    Ray { bootstrap, args: words(&["--object-store-memory=1000000000"]) }
}

/// A service on the first of two nodes, a step beside it on the second, and one after that.
pub(super) fn with_service() -> BatchScript {
    let on = |name: &str, kind, first, argv: &[&str]| Component {
        name: name.parse().unwrap(),
        kind,
        nodes: Nodes { first, count: 1 },
        log: Log::Own,
        timeout: RunTime::from_seconds(600),
        ..on_hosts(1, argv)
    };
    let components = vec![
        Component { timeout: None, ..on("model", Kind::Service, 0, &["./serve.sh"]) },
        on("score", Kind::Step, 1, &["./score.sh"]),
        on("report", Kind::Step, 1, &["./report.sh"]),
    ];
    BatchScript { components, ..on_two_hosts() }
}

/// A service in an image of its own, with variables that only it has.
fn components_of_their_own() -> BatchScript {
    let mut script = with_service();
    let hook_env = [("NVIDIA_VISIBLE_DEVICES".parse().unwrap(), "void".to_owned())].into();
    let image = "vllm/vllm-openai:v0.13.0".to_owned();
    let place = Place::Pyxis(Container { image, hook_env, home: Some(false), ..container() });
    let service = &mut script.components[0];
    service.place = place;
    service.env_file = Some("/lustre/u/env/1.model.sh".parse().unwrap());
    service.node_env = vec![("HF_TOKEN".parse().unwrap(), "TEAM_TOKEN".parse().unwrap())];
    script
}

/// A service that must answer before the steps begin, and the first step may fail.
fn watched_services() -> BatchScript {
    let mut script = with_service();
    let service = &mut script.components[0];
    let port = Value::Port(24);
    service.port = Some(port.clone());
    service.variables = vec![("PORT".parse().unwrap(), port.clone())];
    let (path, body) = ("/health?full='1'".to_owned(), Some(("\"ready\"".to_owned(), 2)));
    service.rules = Some(ServiceRules {
        probe: Some(Probe::Http { node: 0, port, path, status: 200, body }),
        every: 5,
        probe_limit: 10,
        ready_limit: 3600,
        live_every: 30,
        most_missed: 3,
        most_again: 1,
    });
    script.components[1].may_fail = true;
    script
}

/// Every kind of script with the name of its file.
pub(super) fn kinds() -> Vec<(&'static str, BatchScript)> {
    let nproc_per_node = None;
    let mut mpi = launched(Mpi { plugin: Some("pmix".parse().unwrap()) });
    mpi.directives.tasks_per_node = 4;
    mpi.components[0].tasks_per_node = 4;
    let mut apptainer = base();
    apptainer.components[0].place =
        Place::Apptainer(Container { image: "docker://nvcr.io/nvidia/tao:6".to_owned(), ..container() });
    let mut apptainer_on_two_nodes = apptainer.clone();
    apptainer_on_two_nodes.directives.nodes = 2;
    apptainer_on_two_nodes.components[0].nodes.count = 2;
    let shared = BatchScript { port: None, ..launched(torchrun(Rendezvous::Static)) };
    let mut array = launched(Plain);
    array.directives.array = Some(("0-9".parse().unwrap(), Some(4)));
    array.array = Some(crate::script::ArrayNumbers { base: 1001, count: 1011 });
    vec![
        ("array", array),
        ("container", base()),
        ("two_hosts", on_two_hosts()),
        ("cosmos", cosmos()),
        ("plain", launched(Plain)),
        ("torchrun", launched(torchrun(Rendezvous::C10d))),
        ("torchrun_static_on_shared_nodes", shared),
        ("accelerate", launched(Accelerate { nproc_per_node, args: words(&["--mixed_precision=bf16"]) })),
        ("deepspeed", launched(DeepSpeed { nproc_per_node: Some(2), args: vec![] })),
        ("mpi", mpi),
        ("ray", launched(ray(Bootstrap::Steps))),
        ("ray_symmetric_run", launched(ray(Bootstrap::SymmetricRun))),
        ("apptainer", apptainer),
        ("apptainer_on_two_nodes", apptainer_on_two_nodes),
        ("service_and_steps", with_service()),
        ("components_of_their_own", components_of_their_own()),
        ("watched_services", watched_services()),
        (
            "hostile_words",
            BatchScript { components: vec![on_hosts(1, &["a'b\"c$(x)`y`\n\\", ""])], ..base() },
        ),
    ]
}

#[test]
fn every_kind_of_script_is_as_its_file() {
    for (name, script) in kinds() {
        golden(name, &script);
    }
}

#[test]
fn a_plain_component_has_one_process_on_the_first_of_its_nodes() {
    let text = rendered(&launched(Plain));
    assert!(text.contains(" --nodes=1 --ntasks=1 --nodelist=\"$(_tao_slice 0 1 ,)\" \\\n"), "{text}");
    assert!(!text.contains("WORLD_SIZE"), "{text}");
}

#[test]
fn the_world_of_deepspeed_lists_the_gpus_of_each_node() {
    let text = rendered(&launched(DeepSpeed { nproc_per_node: Some(2), args: vec![] }));
    let world = text.split("--world_info=").nth(1).unwrap().split(' ').next().unwrap();
    let mut base64 =
        Command::new("base64").arg("-d").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    base64.stdin.take().unwrap().write_all(world.as_bytes()).unwrap();
    let world = String::from_utf8(base64.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(world, r#"{"node00000": [0, 1], "node00001": [0, 1]}"#);
}
