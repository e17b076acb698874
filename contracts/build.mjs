// Compiles contracts/src into payments_core/chains/evm/contracts.json: `make contracts`.
//
// The compiler is npm's solc (solc-js) in exactly one version, fetched into the user's cache. The
// same sources give the same bytes on every machine: nothing of a path or a time gets into them.
//
//     node contracts/build.mjs [FILE]     write FILE instead

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync } from "node:fs";
import { renameSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const SOLC = "0.8.30";
const HERE = dirname(fileURLToPath(import.meta.url));
const SOURCES = join(HERE, "src");
const RESULT = join(HERE, "..", "payments_core", "chains", "evm", "contracts.json");

// What Python deploys or calls; the test tokens' code is also put at real tokens' addresses.
const CONTRACTS = {
  "first/Factory.sol": ["Factory"],
  "Factory.sol": ["Factory"],
  "Purse.sol": ["Purse"],
  "Vault.sol": ["Vault"],
  "RoleModule.sol": ["RoleModule"],
  "CctpForwarders.sol": ["CctpForwarders"],
  "CctpForwarder.sol": ["CctpForwarder"],
  "testing/TestToken.sol": ["TestToken"],
  "testing/OddTokens.sol": [
    "FeeToken", "BlacklistToken", "SilentToken", "SpoofToken", "HostileToken",
  ],
  "testing/Callers.sol": ["Batch", "ContractWallet"],
  "testing/TestAggregator.sol": ["TestAggregator"],
  "testing/Cctp.sol": ["TestMessageTransmitter", "TestTokenMessenger"],
};

const SETTINGS = {
  evmVersion: "paris", // no PUSH0, which not every chain has
  optimizer: { enabled: true, runs: 200 },
  metadata: { bytecodeHash: "none", appendCBOR: false },
  outputSelection: { "*": { "*": ["abi", "evm.bytecode.object", "evm.deployedBytecode.object"] } },
};

function compiler() {
  const caches = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "payments-core");
  const folder = join(caches, `solc-${SOLC}`);
  if (!existsSync(folder)) {
    mkdirSync(caches, { recursive: true });
    // Whoever is done first gives the folder its name, so that nobody ever sees half of one.
    const made = mkdtempSync(join(caches, `.solc-${SOLC}-`));
    try {
      const options = ["--no-save", "--ignore-scripts", "--no-audit", "--no-fund"];
      execFileSync("npm", ["i", "--prefix", made, ...options, `solc@${SOLC}`], { stdio: "ignore" });
      renameSync(made, folder);
    } catch (error) {
      if (!existsSync(folder)) throw new Error(`npm could not fetch solc ${SOLC}: ${error.code}`);
    } finally {
      rmSync(made, { recursive: true, force: true });
    }
  }
  return createRequire(join(folder, "package.json"))("solc");
}

function sources() {
  const names = readdirSync(SOURCES, { recursive: true })
    .map((name) => name.replaceAll("\\", "/"))
    .filter((name) => name.endsWith(".sol"));
  return names.sort().map((name) => [name, readFileSync(join(SOURCES, name), "utf8")]);
}

function compiled(files) {
  const solc = compiler();
  const input = {
    language: "Solidity",
    sources: Object.fromEntries(files.map(([name, content]) => [name, { content }])),
    settings: SETTINGS,
  };
  const output = JSON.parse(solc.compile(JSON.stringify(input)));
  if (output.errors?.length) { // warnings too
    throw new Error(output.errors.map((error) => error.formattedMessage).join("\n"));
  }
  const contracts = {};
  for (const [file, names] of Object.entries(CONTRACTS)) {
    for (const name of names) {
      const { abi, evm } = output.contracts[file][name];
      const made = { abi, bytecode: evm.bytecode.object };
      if (file.startsWith("testing/")) made.runtime = evm.deployedBytecode.object;
      contracts[file.startsWith("first/") ? `first/${name}` : name] = made;
    }
  }
  return { compiler: solc.version(), contracts };
}

const files = sources();
const hashes = files.map(([name, text]) => [name, createHash("sha256").update(text).digest("hex")]);
const result = { sources: Object.fromEntries(hashes), ...compiled(files) };
writeFileSync(process.argv[2] ?? RESULT, `${JSON.stringify(result, null, 1)}\n`);
