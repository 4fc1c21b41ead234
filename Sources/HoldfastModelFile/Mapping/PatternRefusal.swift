import HoldfastStore

extension ModelFileOptions {
  /// Throws if an attribute has a regular expression and these options refuse them.
  func checkPatterns(_ entities: [EntityDescription], _ composites: [CompositeDescription]) throws(ModelFileError) {
    if !refusesPatterns { return }
    for entity in entities { try refusePatterns(entity.attributes, "entity \(entity.name.quoted)") }
    for composite in composites { try refusePatterns(composite.elements, "composite \(composite.name.quoted)") }
  }

  private func refusePatterns(_ attributes: [AttributeDescription], _ owner: String) throws(ModelFileError) {
    guard let attribute = attributes.first(where: { $0.validation.regularExpression != nil }) else { return }
    throw ModelFileError(
      .refusedPattern, element: "attribute \(attribute.name.quoted) of \(owner)",
      reason: "The options refuse its regular expression. Remove the pattern, or unset refusesPatterns if you trust the file.")
  }
}
