// Verifies deliveries with the standard's own library, which is not ours.
//
// Standard input: one JSON object a line, {"secret": "whsec_…", "headers": {name: value}, "body": "text"}.
// Standard output: one line for each, `valid` or `invalid: why`.
import { createInterface } from "node:readline";
import { Webhook } from "standardwebhooks";

for await (const line of createInterface({ input: process.stdin })) {
  try {
    const { secret, headers, body } = JSON.parse(line);
    new Webhook(secret).verify(body, headers, { jsonParse: false });
    console.log("valid");
  } catch (error) {
    console.log(`invalid: ${error.message}`);
  }
}
