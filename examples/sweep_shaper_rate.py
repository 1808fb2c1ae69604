"""How much bandwidth must a shaper give up? Sweeps its rate on a cable line and prints what each costs.

python examples/sweep_shaper_rate.py
"""

import weirlab

SHARES = [100, 99, 97, 95, 90, 80]

records = weirlab.run(
    "rrul",
    link="cable-20-8",
    queue=["default", *(f"htb rate {share}% fq_codel" for share in SHARES)],
    phases={"idle": "2s", "load": "20s", "cooldown": "1s"},
)
for one in weirlab.compare(records):
    if one.increase_ms and one.down_mbps:
        cost = f"{one.down_mbps.mean:5.1f} Mbit/s down"
        print(f"{one.name:28} {cost}, +{one.increase_ms.mean:6.1f} ms under load")
