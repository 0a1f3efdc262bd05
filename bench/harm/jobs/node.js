// node.js DATA SCRATCH EPOCHS: parses all JSON documents of DATA, eight at a time, each epoch.
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const path = require('path');

async function main() {
  const [folder, , epochs] = process.argv.slice(2);
  const hash = crypto.createHash('sha256');
  const seconds = [];
  for (let epoch = 0; epoch < Number(epochs); ++epoch) {
    const started = process.hrtime.bigint();
    const names = fs.readdirSync(folder).sort();
    for (let first = 0; first < names.length; first += 8) {
      const some = names.slice(first, first + 8);
      const texts = await Promise.all(some.map((name) => fs.promises.readFile(path.join(folder, name), 'utf8')));
      for (const text of texts) hash.update(String(JSON.parse(text).total));
    }
    seconds.push(Number(process.hrtime.bigint() - started) / 1e9);
  }
  console.log(JSON.stringify({epochs: seconds, digest: hash.digest('hex')}));
}

main();
