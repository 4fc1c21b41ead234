extension ModelFileOptions {
  /// The most entities of a compiled model, and the most configurations.
  var maximumEntities: Int { 5_000 }
  /// The most properties of all entities of a compiled model together, inherited ones counted in each.
  var maximumProperties: Int { 200_000 }
}
