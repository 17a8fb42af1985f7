#!/usr/bin/env python3
"""Writes large traces of other tools, to measure `medley trace` on them: a training step repeated until the file has its size.

  bench/trace/large_traces.py kineto|chakra FILE [GIB]
  /usr/bin/time -v medley trace FILE

Both have the mix of a profiled transformer: of about 400 events, 4 are about communication (a call and its kernel, twice).
"""
import sys

LAYERS = 32


def cpu_op(name, ts, ident):
    return ('{"ph":"X","cat":"cpu_op","name":"%s","pid":100,"tid":100,"ts":%.3f,"dur":12.5,"args":{"External id":%d,"Record function id":0,'
            '"Sequence number":%d,"Fwd thread id":0,"Ev Idx":%d,"Input Dims":[[4,2048,4096],[4096,4096],[]],"Input type":["c10::BFloat16",'
            '"c10::BFloat16","Scalar"]}}' % (name, ts, ident, ident, ident))


def kernel(name, ts, ident, extra=""):
    return ('{"ph":"X","cat":"kernel","name":"%s","pid":0,"tid":7,"ts":%.3f,"dur":31.25,"args":{"External id":%d,"queued":0,"device":0,"context":1,'
            '"stream":7,"correlation":%d,"registers per thread":168,"shared memory":98304,"blocks per SM":1.5,"warps per SM":6.0,'
            '"grid":[132,1,1],"block":[128,1,1],"est. achieved occupancy %%":19%s}}' % (name, ts, ident, ident, extra))


def runtime(ts, ident):
    return ('{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":100,"tid":100,"ts":%.3f,"dur":4.25,"args":{"External id":%d,"cbid":211,'
            '"correlation":%d}},{"ph":"s","id":%d,"pid":100,"tid":100,"ts":%.3f,"cat":"ac2g","name":"ac2g"}' % (ts, ident, ident, ident, ts))


def collective(ts, ident, sequence):
    arguments = ('"Collective name":"allreduce","In msg nelems":33554432,"Out msg nelems":33554432,"Group size":8,"dtype":"BFloat16",'
                 '"Process Group Name":"1","Process Group Description":"default_pg","Process Group Ranks":"[0, 1, 2, 3, 4, 5, 6, 7]","Seq":%d' % sequence)
    return [f'{{"ph":"X","cat":"cpu_op","name":"record_param_comms","pid":100,"tid":100,"ts":{ts:.3f},"dur":9.5,"args":{{"External id":{ident},{arguments}}}}}',
            kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", ts + 20, ident, "," + arguments)]


def kineto(out, size):
    written = out.write(b'{"schemaVersion":1,"distributedInfo":{"backend":"nccl","rank":0,"world_size":8},"traceEvents":[\n')
    ts, ident, sequence, separator = 1e9, 0, 0, b""
    while written < size:
        events = []
        for _ in range(LAYERS):
            for _ in range(98):
                ident += 1
                events += [cpu_op("aten::mm", ts, ident), runtime(ts + 3, ident),
                           kernel("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel", ts + 8, ident)]
                ts += 14
            for _ in range(2):
                ident += 1
                sequence += 1
                events += collective(ts, ident, sequence)
                ts += 14
        written += out.write(separator + ",\n".join(events).encode())
        separator = b",\n"
    out.write(b'\n],"traceName":"large"}\n')
    return ident, sequence


def varint(value):
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def text(field, value):
    return varint(field << 3 | 2) + varint(len(value)) + value


def node(ident, name, kind, ts, attributes):
    message = number(1, ident) + text(2, name) + number(3, kind) + text(5, varint(ident - 1)) + number(6, ts) + number(7, 31) + attributes
    return varint(len(message)) + message


def chakra(out, size):
    def attribute(name, value):
        return text(10, text(1, name) + (text(29, value) if isinstance(value, bytes) else number(27 if isinstance(value, bool) else 9, value)))

    compute = attribute(b"is_cpu_op", False) + attribute(b"num_ops", 1 << 36) + attribute(b"tensor_size", 1 << 25) + attribute(
        b"op_schema", b"aten::mm(Tensor self, Tensor mat2) -> Tensor")
    send = attribute(b"is_cpu_op", False) + attribute(b"comm_type", 0) + attribute(b"comm_size", 1 << 26) + attribute(b"pg_name", b"1")
    head = text(1, b"0.0.4")
    written = out.write(varint(len(head)) + head)
    ident, ts, sent = 0, 0, 0
    while written < size:
        nodes = []
        for i in range(4096):
            ident += 1
            ts += 14
            one = i % 100 == 99
            sent += one
            nodes.append(node(ident, b"nccl:all_reduce", 7, ts, send) if one else node(ident, b"sm90_xmma_gemm_bf16bf16", 4, ts, compute))
        written += out.write(b"".join(nodes))
    return ident, sent


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4) or sys.argv[1] not in ("kineto", "chakra"):
        sys.exit(__doc__)
    with open(sys.argv[2], "wb") as file:
        events, collectives = {"kineto": kineto, "chakra": chakra}[sys.argv[1]](file, int(float(sys.argv[3] if len(sys.argv) > 3 else 1) * 2**30))
    print(f"{collectives} collectives among {events} operations")
