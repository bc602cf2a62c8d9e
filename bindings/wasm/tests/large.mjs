// A program of 100 MB: a table of rows, one of which it looks up.

import { writeFileSync } from "node:fs";

import { Files, start } from "../dist/npm/edgepack.js";

const [ROWS, WIDTH] = [390_625, 64];

const TEXT = `edgepack_program 1
layout header 32 segments 128 data 16
methods {
  method "forward" {
    memory [0, 272]
    operators {
      operator "aten::embedding" "out" // 0
    }
    delegates {
    }
    values {
      %0 = tensor i64[1] at 1:256
      %1 = tensor f32[${ROWS}, ${WIDTH}] { external name "table" }
      %2 = tensor f32[1, ${WIDTH}] at 1:0
      %3 = int -1
      %4 = bool false
    }
    inputs [%0]
    outputs [%2]
    chains {
      chain {
        inputs []
        outputs []
        code {
          aten::embedding.out(%1, %0, %3, %4, %4, %2, %2)
        }
      }
    }
  }
}
segments {
}
inline_constants {
}
inline_delegates {
}
`;

const said = (files, ...args) => {
  const { status, text, errors } = files.command(...args);
  if (status !== 0) throw new Error(`${args.join(" ")}: ${text}${errors}`);
};

/** Writes the program; the elements of row 3 are all `weight`. */
export const makeLarge = async (path) => {
  await start();
  const files = new Files();
  const table = new Float32Array(ROWS * WIDTH).map((_, index) => Math.floor(index / WIDTH) + 0.5);
  const header = new TextEncoder().encode(JSON.stringify({ table: { dtype: "F32", shape: [ROWS, WIDTH], data_offsets: [0, table.byteLength] } }));
  const whole = new Uint8Array(8 + header.length + table.byteLength);
  new DataView(whole.buffer).setBigUint64(0, BigInt(header.length), true);
  whole.set(header, 8);
  whole.set(new Uint8Array(table.buffer), 8 + header.length);
  files.addBytes("table.safetensors", whole);
  files.addBytes("program.txt", new TextEncoder().encode(TEXT));
  said(files, "parse", "program.txt", "-o", "program.pte");
  said(files, "convert", "table.safetensors", "table.ptd");
  said(files, "join", "program.pte", "--data", "table.ptd", "-o", "large.pte");
  const content = files.get("large.pte");
  writeFileSync(path, content);
  return { size: content.length, weight: 3.5 };
};
