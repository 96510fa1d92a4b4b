//! The address that the process listens on.

use std::{io, net::SocketAddr};

use tokio::net::TcpListener;

use crate::{cli::Role, config::Settings};

/// Opens the listener of this role; none for a worker without a configured address.
pub(super) async fn listen(settings: &Settings, role: Role) -> anyhow::Result<Option<TcpListener>> {
    let (address, set_by) = match role {
        Role::All | Role::Api => (Some(settings.server.bind), "--bind, TAO_SLURM_BIND or server.bind"),
        Role::Worker => (settings.worker.bind, "--bind, TAO_SLURM_WORKER_BIND or worker.bind"),
    };
    match address {
        Some(address) => bind(address, set_by).await.map(Some),
        None => Ok(None),
    }
}

async fn bind(address: SocketAddr, set_by: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| {
        let advice = match error.kind() {
            io::ErrorKind::AddrInUse => "another program listens there; stop it, or choose another address",
            io::ErrorKind::PermissionDenied => {
                "this user may not listen on ports below 1024; choose another port"
            }
            io::ErrorKind::AddrNotAvailable => "this machine does not have that address; choose another",
            _ => "choose another address",
        };
        anyhow::anyhow!("cannot listen on {address}: {advice} with {set_by} ({error})")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn any_port() -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 0))
    }

    #[tokio::test]
    async fn a_worker_listens_only_on_a_configured_address() {
        let mut settings = Settings::default();
        settings.server.bind = any_port();
        assert!(listen(&settings, Role::Worker).await.unwrap().is_none());
        assert!(listen(&settings, Role::Api).await.unwrap().is_some());
        settings.worker.bind = Some(any_port());
        assert!(listen(&settings, Role::Worker).await.unwrap().is_some());
    }

    #[tokio::test]
    async fn an_address_in_use_is_an_error_that_says_what_to_do() {
        let taken = TcpListener::bind(any_port()).await.unwrap();
        let mut settings = Settings::default();
        settings.server.bind = taken.local_addr().unwrap();
        settings.worker.bind = Some(settings.server.bind);
        for (role, key) in [(Role::All, "TAO_SLURM_BIND"), (Role::Worker, "TAO_SLURM_WORKER_BIND")] {
            let error = listen(&settings, role).await.unwrap_err().to_string();
            assert!(error.contains("another program listens there") && error.contains(key), "{error}");
        }
    }
}
