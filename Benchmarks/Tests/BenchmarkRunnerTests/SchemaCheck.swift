import Foundation

/// The subset of JSON Schema 2020-12 that the schema uses.
struct SchemaCheck {
  let root: [String: Any]

  init(_ root: [String: Any]) { self.root = root }

  func faults(_ value: Any, _ schema: [String: Any], _ path: String) -> [String] {
    var found: [String] = []
    if let reference = schema["$ref"] as? String {
      let definitions = root["$defs"] as? [String: [String: Any]]
      found += faults(value, definitions?[String(reference.split(separator: "/").last ?? "")] ?? ["const": "nothing"], path)
    }
    if let constant = schema["const"], !equal(constant, value) { found.append("\(path): not \(constant)") }
    if let list = schema["enum"] as? [Any], !list.contains(where: { equal($0, value) }) { found.append("\(path): none of the list") }
    if let types = schema["type"] as? [String] ?? (schema["type"] as? String).map({ [$0] }), !types.contains(where: { isType(value, $0) }) {
      return found + ["\(path): no \(types)"]
    }
    if let any = schema["anyOf"] as? [[String: Any]], !any.contains(where: { faults(value, $0, path).isEmpty }) {
      found.append("\(path): fits no part")
    }
    if let text = value as? String, let pattern = schema["pattern"] as? String, text.range(of: pattern, options: .regularExpression) == nil
    {
      found.append("\(path): not like \(pattern)")
    }
    if let number = value as? Double, isType(value, "number") {
      if let least = schema["minimum"] as? Double, number < least { found.append("\(path): too small") }
      if let most = schema["maximum"] as? Double, number > most { found.append("\(path): too large") }
    }
    return found + faults(ofList: value, schema, path) + faults(ofObject: value, schema, path)
  }

  private func faults(ofList value: Any, _ schema: [String: Any], _ path: String) -> [String] {
    guard let list = value as? [Any] else { return [] }
    var found: [String] = []
    if let least = schema["minItems"] as? Int, list.count < least { found.append("\(path): too few") }
    if let most = schema["maxItems"] as? Int, list.count > most { found.append("\(path): too many") }
    let prefix = schema["prefixItems"] as? [[String: Any]] ?? []
    for (place, (item, schema)) in zip(list, prefix).enumerated() { found += faults(item, schema, "\(path)[\(place)]") }
    if let items = schema["items"] as? [String: Any] {
      for (place, item) in list.enumerated().dropFirst(prefix.count) { found += faults(item, items, "\(path)[\(place)]") }
    }
    return found
  }

  private func faults(ofObject value: Any, _ schema: [String: Any], _ path: String) -> [String] {
    guard let object = value as? [String: Any] else { return [] }
    var found = (schema["required"] as? [String] ?? []).filter { object[$0] == nil }.map { "\(path): no \($0)" }
    let properties = schema["properties"] as? [String: [String: Any]] ?? [:]
    for (name, member) in object {
      if let known = properties[name] {
        found += faults(member, known, "\(path).\(name)")
      } else if let others = schema["additionalProperties"] as? [String: Any] {
        found += faults(member, others, "\(path).\(name)")
      } else if schema["additionalProperties"] as? Bool == false {
        found.append("\(path): has \(name)")
      }
    }
    return found
  }

  private func equal(_ a: Any, _ b: Any) -> Bool { (a as? NSObject) == (b as? NSObject) }

  private func isType(_ value: Any, _ type: String) -> Bool {
    let isBoolean =
      value is Bool && "\(Swift.type(of: value))".contains("Bool") || (value as? NSNumber).map { TruthValue.isOne($0) } ?? false
    switch type {
    case "null": return value is NSNull
    case "boolean": return isBoolean
    case "number": return value is NSNumber && !isBoolean
    case "integer": return !isBoolean && (value as? NSNumber).map { $0.doubleValue == $0.doubleValue.rounded() } ?? false
    case "string": return value is String
    case "array": return value is [Any]
    default: return value is [String: Any]
    }
  }
}

/// The numbers that were Booleans in JSON.
private enum TruthValue {
  static func isOne(_ number: NSNumber) -> Bool {
    number === NSNumber(value: true) || number === NSNumber(value: false) || String(cString: number.objCType) == "c"
  }
}
