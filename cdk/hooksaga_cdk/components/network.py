"""The VPC of functions, database and endpoints, with egress paths that have fixed addresses."""

# pyright: reportArgumentType=false
# The CDK's classes name some parameters other than its interfaces do, which pyright takes for a mismatch.

from aws_cdk import Fn
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct

from hooksaga.aws.deployment import Environment, Nat
from hooksaga.aws.deployment_limits import SUBNET_SIZES
from hooksaga_cdk.components.exceptions import allow
from hooksaga_cdk.components.kept_logs import log_group
from hooksaga_cdk.components.place import Subnets

SUBNETS = Subnets(
    *(ec2.SubnetSelection(subnet_group_name=name) for name in ("outbound", "inside", "database"))
)

_ADDRESSES = {Nat.GATEWAY: "EgressAddress", Nat.INSTANCE: "EgressAddressOfNatInstance"}
"""One address per kind of NAT: AWS does not assign one to a gateway while an instance still holds it."""

_SWAP = (
    # Not fallocate: XFS does not swap to a file with holes.
    "dd if=/dev/zero of=/swapfile bs=1M count=1024",
    "chmod 600 /swapfile",
    "mkswap /swapfile",
    "swapon /swapfile",
)
_FIRST_COMMAND_OF_CDK = "yum install iptables-services -y"


class Network(Construct):
    """`outbound` is for functions that call receivers; `inside` for all others has no route to the internet."""

    def __init__(self, scope: Construct, name: str, env: Environment) -> None:
        super().__init__(scope, name)
        self._addresses = [
            ec2.CfnEIP(self, f"{_ADDRESSES[env.nat]}{number or ''}", domain="vpc")
            for number in range(env.nat_zones)
        ]
        nat = self._nat(env)
        self.vpc = ec2.Vpc(
            self,
            "Vpc",
            ip_addresses=ec2.IpAddresses.cidr(env.address_range),
            max_azs=env.zones,
            nat_gateways=env.nat_zones,
            nat_gateway_provider=nat,
            restrict_default_security_group=False,  # would need a custom resource; no resource uses that group
            subnet_configuration=[
                _subnets("public", ec2.SubnetType.PUBLIC),
                _subnets("outbound", ec2.SubnetType.PRIVATE_WITH_EGRESS),
                _subnets("inside", ec2.SubnetType.PRIVATE_ISOLATED),
                _subnets("database", ec2.SubnetType.PRIVATE_ISOLATED),
            ],
        )
        if isinstance(nat, ec2.NatInstanceProviderV2):
            self._finish_instance(nat, env)
        self.nat_gateways = [one.gateway_id for one in nat.configured_gateways]
        """Ids of the gateways, or of the instance."""
        self._log_flows(env)

    @property
    def egress_address(self) -> str:
        """Return the source addresses of all deliveries, separated by commas."""
        return Fn.join(",", [address.ref for address in self._addresses])

    def _nat(self, env: Environment) -> ec2.NatProvider:
        if env.nat is Nat.GATEWAY:
            return ec2.NatProvider.gateway(
                eip_allocation_ids=[address.attr_allocation_id for address in self._addresses]
            )
        return ec2.NatProvider.instance_v2(
            instance_type=ec2.InstanceType("t4g.nano"),
            machine_image=ec2.MachineImage.latest_amazon_linux2023(cpu_type=ec2.AmazonLinuxCpuType.ARM_64),
            default_allowed_traffic=ec2.NatTrafficDirection.NONE,
            user_data=_user_data(),
        )

    def _finish_instance(self, nat: ec2.NatInstanceProviderV2, env: Environment) -> None:
        """Allow the ports of receivers, and what the instance needs for its own setup."""
        for port in sorted({443, *env.receiver_ports}):
            nat.security_group.add_egress_rule(ec2.Peer.any_ipv4(), ec2.Port.tcp(port))
        for port in env.receiver_ports:
            nat.security_group.add_ingress_rule(ec2.Peer.ipv4(env.address_range), ec2.Port.tcp(port))
        for instance in nat.gateway_instances:
            self._assign_address(instance)

    def _assign_address(self, instance: ec2.Instance) -> None:
        ec2.CfnEIPAssociation(
            self,
            "EgressAddressOfInstance",
            allocation_id=self._addresses[0].attr_allocation_id,
            instance_id=instance.instance_id,
        )
        resource = instance.node.default_child
        assert isinstance(resource, ec2.CfnInstance)
        resource.block_device_mappings = [_encrypted_disk()]
        allow(
            instance,
            "AwsSolutions-EC28",
            "It forwards packets; an alarm watches its status, which AWS checks each minute anyway.",
        )
        allow(
            instance,
            "AwsSolutions-EC29",
            "It holds nothing: a deployment replaces a missing one, with the same address.",
        )

    def _log_flows(self, env: Environment) -> None:
        role = iam.Role(self, "FlowLogRole", assumed_by=iam.ServicePrincipal("vpc-flow-logs.amazonaws.com"))
        group = log_group(self, "FlowLogs", f"/hooksaga/{env.name}/flows", env)
        self.vpc.add_flow_log(
            "RefusedFlows",
            destination=ec2.FlowLogDestination.to_cloud_watch_logs(group, role),
            traffic_type=ec2.FlowLogTrafficType.REJECT,
        )


def _subnets(name: str, kind: ec2.SubnetType) -> ec2.SubnetConfiguration:
    return ec2.SubnetConfiguration(name=name, subnet_type=kind, cidr_mask=SUBNET_SIZES[name])


def _user_data() -> ec2.UserData:
    """Return the CDK's first-boot script, with retries, so that a failed installation is repeated.

    Swap comes first: an installation can need more than the 512 MB of a nano instance. It is repeated until it
    succeeds: the mirror can be unreachable while the instance's address changes to the fixed one.
    """
    install, *rest = ec2.NatInstanceProviderV2.DEFAULT_USER_DATA_COMMANDS
    assert install == _FIRST_COMMAND_OF_CDK, install
    data = ec2.UserData.for_linux()
    data.add_commands(*_SWAP, f"until {install}; do sleep 10; done", *rest)
    return data


def _encrypted_disk() -> ec2.CfnInstance.BlockDeviceMappingProperty:
    disk = ec2.CfnInstance.EbsProperty(encrypted=True, volume_type="gp3")
    return ec2.CfnInstance.BlockDeviceMappingProperty(device_name="/dev/xvda", ebs=disk)
