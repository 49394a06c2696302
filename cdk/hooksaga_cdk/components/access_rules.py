"""Security groups. Only functions that call receivers may reach the internet."""

from collections.abc import Sequence

from aws_cdk import aws_ec2 as ec2
from constructs import Construct

POSTGRES_PORT = 5432
HTTPS = 443
NOWHERE = ec2.Peer.ipv4("255.255.255.255/32")


class AccessRules(Construct):
    """`inside` and `outbound` are for functions without and with calls to receivers; the other groups for their
    targets. `database` and `endpoints` may be given groups of existing targets. `proxy` is None without one."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        vpc: ec2.IVpc,
        receiver_ports: Sequence[int],
        *,
        proxy: bool,
        database: ec2.ISecurityGroup | None = None,
        database_port: float = POSTGRES_PORT,
        endpoints: ec2.ISecurityGroup | None = None,
    ) -> None:
        super().__init__(scope, name)
        self.inside = self._group("Inside", vpc, "Functions that never call receivers")
        self.outbound = self._group("Outbound", vpc, "Functions that call receivers")
        self.database = database or self._group("Database", vpc, "PostgreSQL")
        self.endpoints = endpoints or self._group("Endpoints", vpc, "SQS and Secrets Manager")
        self.proxy = self._group("Proxy", vpc, "RDS Proxy") if proxy else None
        own = [self.inside, self.outbound]
        targets = [(self.database, database_port), (self.endpoints, HTTPS)]
        if self.proxy is not None:
            targets.append((self.proxy, database_port))
        for functions in own:
            for target, port in targets:
                self._allow(functions, target, port)
        if self.proxy is not None:
            self._allow(self.proxy, self.database, database_port)
            own.append(self.proxy)
        for group in own:
            # A rule of the group itself reliably replaces AWS's default rule, which allows all outgoing traffic.
            group.add_egress_rule(NOWHERE, ec2.Port.tcp(1), "Nothing but what the other rules say")
        self._allow_egress(receiver_ports)

    def _group(self, name: str, vpc: ec2.IVpc, description: str) -> ec2.SecurityGroup:
        return ec2.SecurityGroup(self, name, vpc=vpc, description=description, allow_all_outbound=False)

    def _allow_egress(self, ports: Sequence[int]) -> None:
        for port in ports:
            self.outbound.add_egress_rule(ec2.Peer.any_ipv4(), ec2.Port.tcp(port), "Receivers of webhooks")

    def _allow(self, source: ec2.SecurityGroup, target: ec2.ISecurityGroup, port: float) -> None:
        """Allow the connections. Both rules belong to this construct, also if the target is defined elsewhere: what
        depends on the construct then waits for them."""
        source.add_egress_rule(target, ec2.Port.tcp(port))
        name = {self.database: "Database", self.endpoints: "Endpoints"}.get(target, "Proxy")
        ec2.CfnSecurityGroupIngress(
            self,
            f"{name}From{source.node.id}",
            group_id=target.security_group_id,
            source_security_group_id=source.security_group_id,
            ip_protocol="tcp",
            from_port=port,
            to_port=port,
            description=f"hooksaga: {source.node.path}",
        )
