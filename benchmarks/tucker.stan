// The Tucker Gaussian process of the paper for two modes, on rows: factors once a distinct input, not once a datum.
data {
  int<lower=1> N;
  int<lower=1> M1;
  int<lower=1> M2;
  int<lower=1> n;
  int<lower=1> r;
  matrix[M1, n] Phi1;
  matrix[M2, n] Phi2;
  array[N] int<lower=1, upper=M1> row1;
  array[N] int<lower=1, upper=M2> row2;
  vector[N] y;
  real<lower=0> sigma_u;
  real<lower=0> alpha_shape;
  real<lower=0> alpha_rate;
}
parameters {
  matrix[n, r] U1;
  matrix[n, r] U2;
  matrix[r, r] W;
  real<lower=0> alpha;
}
model {
  matrix[M1, r] psi1 = Phi1 * U1;
  matrix[M2, r] psi2 = Phi2 * (U2 * W');
  to_vector(U1) ~ normal(0, sigma_u);
  to_vector(U2) ~ normal(0, sigma_u);
  to_vector(W) ~ std_normal();
  alpha ~ gamma(alpha_shape, alpha_rate);
  y ~ normal(rows_dot_product(psi1[row1], psi2[row2]), inv_sqrt(alpha));
}
